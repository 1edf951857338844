/** The proxy as a plugin of a Fastify application. */
import { Server as HttpServer } from 'node:http';
import { Server as HttpsServer } from 'node:https';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { startApp } from '../app.ts';
import { formatWarnings } from '../config/load/mistakes.ts';
import type { ConfigInput } from '../config/schema/config-schema.ts';
import { guardServer } from '../http/server/mounted-connection.ts';
import { MountedRequestSource } from '../http/server/mounted-request-source.ts';
import type { ReloadResult } from '../process/reload-result.ts';
import type { App } from '../process/app-types.ts';
import { createInstanceId } from '../process/instance-id.ts';
import { readVersion } from '../process/version.ts';
import { rejectUnknownOptions } from './unknown-options.ts';
import { ConfigError } from './config-error.ts';
import type { ConfigOrigin } from './config-origin.ts';
import { loadPluginConfig } from './plugin-config.ts';
import { createForwardingLogger } from './host-logger.ts';

/** A metrics registry, such as that of prom-client. */
export interface HostRegistry {
  registerMetric(metric: object): void;
  removeSingleMetric(name: string): void;
}

/** Handle of a mounted proxy. */
export interface Mounted {
  /** The metrics in the Prometheus text format. */
  metrics(): Promise<string>;
  /**
   * Applies a new configuration without interrupting requests. Without an argument, reads `file` (or `config`) again. Never
   * rejects: if the configuration cannot be used, the result says why and the previous one stays in effect.
   */
  reload(config?: ConfigInput): Promise<ReloadResult>;
}

export type TidegateOptions = ConfigOrigin & {
  /** Registry to which the `tidegate_…` metrics are added. Each proxy needs its own. */
  readonly registry?: HostRegistry | undefined;
  /** Called once, before the application is ready. */
  readonly onMounted?: ((mounted: Mounted) => void) | undefined;
};

/**
 * Fastify plugin that proxies every request below its `prefix`. Routes of the configuration match the path after the prefix.
 * The application's hooks run first; its body parsers do not run, and its other routes are not affected. Log lines go to the
 * application's logger. When the application closes, requests in flight have `drain.timeout` to finish.
 * @throws ConfigError with every problem of the configuration; TypeError for invalid options, an HTTP/2 server or a prefix with
 * parameters; Error if the registry already has such metrics, or if a certificate cannot be read
 */
export async function tidegate(app: FastifyInstance, options: TidegateOptions): Promise<void> {
  checkOptions(options);
  const { prefix } = app;
  const server: unknown = app.server;
  if (!(server instanceof HttpServer || server instanceof HttpsServer)) {
    throw new TypeError('tidegate can be mounted in a server of HTTP/1.1 only, and this one speaks HTTP/2');
  }
  if (/[:*]/.test(prefix)) throw new TypeError(`tidegate needs a prefix without parameters, not ${prefix}`);
  const { warnings, ...effective } = loadPluginConfig(options);
  const instance = createInstanceId();
  const logger = createForwardingLogger(app.log).child({ instance });
  for (const warning of warnings) logger.warn(formatWarnings([warning]));
  const mount = new MountedRequestSource();
  const proxy = await startApp(effective.config, {
    logger,
    instance,
    version: readVersion(),
    substituted: effective.substituted,
    mount: { entrance: mount, proto: server instanceof HttpsServer ? 'https' : 'http' },
  });
  drainOnClose(app, proxy);
  guardServer(server);
  // Fastify 5.12.8 measures `elapsedTime` only if it logs, has a `handlerTimeout`, or has such a hook to call (lib/route.js).
  app.addHook('onResponse', (_request, _reply, done) => done());
  const hasHandlerTimeout = Number(Reflect.get(app.initialConfig, 'handlerTimeout')) > 0; // not in its type
  mountRoutes(app, (request, reply) => {
    // Fastify 5.12.8 runs the handler nevertheless while an `onSend` hook delays the 503 (lib/route.js).
    if (hasHandlerTimeout && isHandlerTimeout(request.signal.reason)) return;
    reply.hijack();
    copyHookHeaders(request, reply);
    mount.handle(request.raw, reply.raw, prefix.replace(/(?<!\/)\/+$/, ''), reply.elapsedTime);
  });
  if (options.registry !== undefined) registerMetrics(app, proxy, options.registry);
  options.onMounted?.({
    metrics: async () => (await proxy.registry?.metrics()) ?? '',
    reload: (config) => reloadConfig(proxy, config === undefined ? options : { config }, logger),
  });
}

/** Options of the plugin, and the options of Fastify's `register`, which it passes on. */
const OPTION_NAMES = ['config', 'file', 'registry', 'onMounted', 'prefix', 'logLevel', 'logSerializers'] as const;

/** Rejects invalid options instead of guessing, because the proxy may stand in front of payments. */
function checkOptions(options: TidegateOptions): void {
  rejectUnknownOptions(options, OPTION_NAMES, 'tidegate');
  const { file, onMounted, registry }: { readonly [K in keyof TidegateOptions]: unknown } = options;
  const isInObject = 'config' in options && options.config !== undefined;
  if (isInObject === (file !== undefined)) {
    throw new TypeError(
      isInObject ? 'tidegate takes config or file, not both' : 'tidegate needs config, an object, or file, a path',
    );
  }
  if (file !== undefined && (typeof file !== 'string' || file === '')) throw new TypeError('file must be a path');
  if (onMounted !== undefined && typeof onMounted !== 'function') throw new TypeError('onMounted must be a function');
  if (registry !== undefined && !(registry instanceof Object && 'registerMetric' in registry)) {
    throw new TypeError('registry must be a registry of prom-client');
  }
}

/** Headers that describe the length of the response, which only the proxy knows. */
const FRAMING_HEADERS: ReadonlySet<string> = new Set(['content-length', 'transfer-encoding', 'trailer']);

/** Copies the headers that hooks have set. Headers of the upstream override them. */
function copyHookHeaders(request: FastifyRequest, reply: FastifyReply): void {
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    if (value === undefined || FRAMING_HEADERS.has(name)) continue;
    try {
      reply.raw.setHeader(name, value);
    } catch (error) {
      // After `hijack`, nobody else would respond to the client.
      request.log.error({ header: name, err: error }, 'header of a hook is not valid, and is left out');
    }
  }
}

function isHandlerTimeout(reason: unknown): boolean {
  return reason instanceof Error && 'code' in reason && reason.code === 'FST_ERR_HANDLER_TIMEOUT';
}

/** Registers the routes with parsers that leave every body unread, so that the proxy can stream it. */
function mountRoutes(app: FastifyInstance, handler: (request: FastifyRequest, reply: FastifyReply) => void): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));
  const method = app.supportedMethods;
  app.route({ method, url: '/*', handler, exposeHeadRoute: false });
  if (app.prefix !== '') app.route({ method, url: '/', handler, exposeHeadRoute: false });
}

/** The server waits for requests in flight, so the drain must start before the server closes. */
function drainOnClose(app: FastifyInstance, proxy: App): void {
  let drained: Promise<void> | undefined;
  app.addHook('preClose', (done) => {
    drained = proxy.drain(0);
    done();
  });
  app.addHook('onClose', async () => drained ?? proxy.close());
}

function registerMetrics(app: FastifyInstance, { registry }: App, host: HostRegistry): void {
  // The application reports the metrics of the process itself.
  const metrics = (registry?.getMetricsAsArray() ?? []).filter(({ name }) => name.startsWith('tidegate_'));
  const registered: string[] = [];
  const unregister = (): void => {
    for (const name of registered) host.removeSingleMetric(name);
  };
  for (const metric of metrics) {
    try {
      host.registerMetric(metric);
    } catch (cause) {
      unregister();
      const problem = `registry cannot take ${metric.name}; one proxy can have it, and another needs one of its own`;
      throw new Error(problem, { cause });
    }
    registered.push(metric.name);
  }
  app.addHook('onClose', (_, done) => {
    unregister();
    done();
  });
}

async function reloadConfig(proxy: App, origin: ConfigOrigin, logger: Logger): Promise<ReloadResult> {
  try {
    const { warnings, ...effective } = loadPluginConfig(origin);
    const result = await proxy.apply(effective);
    if (result.kind === 'applied') for (const warning of warnings) logger.warn(formatWarnings([warning]));
    return result;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    logger.error({ problem: error.message }, 'configuration not reloaded: the previous one stays in effect');
    return { kind: 'refused', problem: error.message };
  }
}
