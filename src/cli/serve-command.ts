import type { Logger } from 'pino';
import type { App } from '../app.ts';
import { startApp } from '../app.ts';
import { createInstanceId } from '../process/instance-id.ts';
import type { SystemdNotifier } from '../process/health/systemd-notifier.ts';
import { countWorkers } from '../config/compile/divide-config.ts';
import type { startCluster as StartCluster } from '../process/cluster/primary.ts';
import { formatMistakes, formatWarnings } from '../config/load/mistakes.ts';
import { ConfigSource } from '../config/load/config-source.ts';
import type { Config } from '../config/schema/config-schema.ts';
import type { Millis } from '../core/scalars.ts';
import type { ServeFlags } from '../config/load/serve-settings.ts';
import { logUnreachableEndpoints } from '../process/probes/probe-upstreams.ts';
import { StdoutDestination } from '../telemetry/log/stdout-destination.ts';
import { logDestination } from '../telemetry/log/log-destination.ts';
import { createLogger } from '../telemetry/log/logger.ts';
import { describeStartError } from './describe-start-error.ts';
import { readFile } from './read-file.ts';
import type { FileWatch } from './watch-files.ts';
import { watchFiles } from './watch-files.ts';

export { announceSecondCtrlC } from './drain-hint.ts';

export type ServeResult =
  | {
      readonly kind: 'running';
      readonly app: App;
      readonly config: Config;
      readonly logger: Logger;
      /** Reloads the configuration when one of its files changes. */
      readonly watch: FileWatch;
      /** Resolves when an operator drains this process by the admin API. */
      readonly drainRequested: Promise<void>;
      /** To be called when this process handles signals: systemd may send one as soon as it is ready. */
      readonly reportReady: () => void;
      /** To be called when this process begins to stop, which takes at most `within`. */
      readonly onStopping: (within: Millis) => void;
    }
  /** Exit code 1: a failure that can be fixed; 2: an invalid command line. */
  | { readonly kind: 'failed'; readonly message: string; readonly exitCode: 1 | 2 };

const NOTHING_TO_SERVE = `nothing to serve: name a config (--config FILE, TIDEGATE_CONFIG) or an upstream (--upstream URL, TIDEGATE_UPSTREAM)`;

/** Starts the proxy, or returns a message why it cannot start. */
export async function serve(flags: ServeFlags, env: NodeJS.ProcessEnv, version: string): Promise<ServeResult> {
  const source = new ConfigSource(flags, { env, readFile });
  const settings = source.read();
  if (settings.kind === 'nothing') return { kind: 'failed', message: NOTHING_TO_SERVE, exitCode: 2 };
  if (settings.kind === 'mistakes') {
    return { kind: 'failed', message: formatMistakes(settings.mistakes), exitCode: 1 };
  }
  const { config, warnings, file, substituted } = settings;
  const workers = countWorkers(config);
  const logOutput = new StdoutDestination(config.log.buffer, workers > 1);
  const instance = createInstanceId();
  const logger = createLogger({
    level: config.log.level,
    destination: logDestination(logOutput, config.log.format, env),
  }).child({ instance });
  for (const warning of warnings) logger.warn(formatWarnings([warning]));
  try {
    // Loaded before the start: no signal is handled between the start and the return.
    const systemd = env['NOTIFY_SOCKET'] ? await openNotifier(env, logger) : undefined;
    const { promise: drainRequested, resolve: requestDrain }: PromiseWithResolvers<void> = Promise.withResolvers();
    const parts = { logger, logOutput, version, instance, source, substituted, requestDrain };
    const app = workers > 1 ? await startWithWorkers(config, workers, parts) : await startApp(config, parts);
    const { url, adminUrl, telemetryUrl } = app;
    logger.info(
      {
        url,
        admin: adminUrl,
        telemetry: telemetryUrl,
        config: file,
        mode: config.mode,
        workers: workers > 1 ? workers : undefined,
        version,
      },
      'listening',
    );
    void logUnreachableEndpoints(config, logger);
    const watch = watchFiles(
      () => source.files,
      () => app.reload(),
    );
    const reportReady = (): void => systemd?.reportReady();
    const onStopping = (within: Millis): void => {
      watch.close();
      systemd?.reportStopping(within);
    };
    return { kind: 'running', app, config, logger, watch, drainRequested, reportReady, onStopping };
  } catch (error) {
    return { kind: 'failed', message: await describeStartError(error, config, env), exitCode: 1 };
  }
}

/** Loaded only under systemd. */
async function openNotifier(env: NodeJS.ProcessEnv, logger: Logger): Promise<SystemdNotifier> {
  const { SystemdNotifier } = await import('../process/health/systemd-notifier.ts');
  return new SystemdNotifier(env, logger);
}

/** Loaded on demand, because most installations have one process. */
async function startWithWorkers(...args: Parameters<typeof StartCluster>): Promise<App> {
  const { startCluster } = await import('../process/cluster/primary.ts');
  return startCluster(...args);
}
