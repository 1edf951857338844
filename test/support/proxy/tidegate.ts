/** Starts Tidegate in this process, on free ports. */
import { Writable } from 'node:stream';
import type { App, AppParts } from '../../../src/app.ts';
import { startApp } from '../../../src/app.ts';
import { readFile } from '../../../src/cli/read-file.ts';
import type { EffectiveConfiguration } from '../../../src/config/load/config-diff.ts';
import { loadConfig } from '../../../src/config/load/load-config.ts';
import { formatMistakes } from '../../../src/config/load/mistakes.ts';
import { createLogger } from '../../../src/telemetry/log/logger.ts';
import type { PracticeServer, PracticeOptions } from '../../../src/simulator/practice/practice-server.ts';
import { startPracticeServer } from '../../../src/simulator/practice/practice-server.ts';
import type { ReloadResult } from '../../../src/process/config-reloads.ts';
import { atEnd } from '../at-end.ts';

export interface Tidegate extends App {
  /** Reloads with another configuration, completed like the first. */
  readonly rewrite: (yaml: string) => Promise<ReloadResult>;
  /** The parsed log lines so far. */
  readonly log: () => Record<string, unknown>[];
  /** The log lines of requests. */
  readonly requests: () => Record<string, unknown>[];
  /** The value of a series, written as it is exposed: `tidegate_retries_total{upstream="api",reason="connect"}`; 0 when absent. */
  readonly metric: (series: string) => Promise<number>;
}

/**
 * Starts one from YAML; adds `listen`, `admin`, a short `drain` and `limits` unless set. Closed when the test ends.
 * @param yaml the rest of the configuration
 */
export async function startTidegate(yaml: string, parts: Pick<AppParts, 'lookup'> = {}): Promise<Tidegate> {
  const load = (written: string): EffectiveConfiguration => {
    const text = complete(written);
    const loaded = loadConfig(text, 'test.yaml', { env: {}, readFile });
    if (loaded.kind === 'mistakes') throw new Error(formatMistakes(loaded.mistakes));
    return loaded;
  };
  const { config, substituted } = load(yaml);
  const lines: string[] = [];
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push(...chunk.toString().trimEnd().split('\n'));
      done();
    },
  });
  const logger = createLogger({ level: 'debug', destination });
  const app = await startApp(config, { logger, version: 'test', substituted, ...parts });
  const parsed: Record<string, unknown>[] = [];
  const log = (): Record<string, unknown>[] => {
    for (const line of lines.splice(0)) parsed.push(JSON.parse(line) as Record<string, unknown>);
    return [...parsed];
  };
  atEnd(async () => {
    await app.close();
    // An error here reaches no client, so that nothing else would fail.
    const failure = log().find(({ msg }) => msg === 'an event listener failed');
    if (failure !== undefined) throw new Error(JSON.stringify(failure));
  });
  return {
    ...app,
    rewrite: (next) => app.apply(load(next)),
    log,
    requests: () => log().filter(({ msg }) => msg === 'request'),
    metric: async (series) => {
      const exposition = await (await fetch(`${app.adminUrl}/metrics`)).text();
      const line = exposition.split('\n').find((each) => each.startsWith(`${series} `));
      return line === undefined ? 0 : Number(line.slice(series.length + 1));
    },
  };
}

/**
 * Disables load shedding: clients and upstreams in the same process delay its event loop too, and so does other work on the machine.
 * A request that is shed gets a 503, and no log line.
 */
export const NO_SHEDDING = 'limits: {overload: {eventLoopDelay: 1h}}';

function complete(yaml: string): string {
  return `${given(NO_SHEDDING, yaml)}${given('listen: 127.0.0.1:0', yaml)}${given('admin: 127.0.0.1:0', yaml)}${given('drain: {delay: 0, timeout: 1s}', yaml)}${yaml}`;
}

function given(line: string, yaml: string): string {
  return new RegExp(`^${line.slice(0, line.indexOf(':'))}:`, 'm').test(yaml) ? '' : `${line}\n`;
}

/** Starts a practice upstream, unlimited by default. Closed when the test ends. */
export async function startUpstream(options: Partial<PracticeOptions> = {}): Promise<PracticeServer> {
  const practice = await startPracticeServer({ limit: { kind: 'unlimited' }, ...options });
  atEnd(() => practice.close());
  return practice;
}

/** Polls every so many ms until a condition holds. Fails with the last value, after a time that only a hang reaches. */
export async function eventually<T>(
  read: () => T | Promise<T>,
  holds: (seen: T) => boolean,
  within = 60_000,
  every = 10,
): Promise<T> {
  const until = performance.now() + within;
  for (;;) {
    const seen = await read();
    if (holds(seen)) return seen;
    if (performance.now() > until) throw new Error(`not within ${within} ms; last seen: ${JSON.stringify(seen)}`);
    await new Promise((resolve) => {
      setTimeout(resolve, every);
    });
  }
}
