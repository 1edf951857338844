/** The proxy as a part of somebody's Fastify application. */
import { Server as HttpServer } from 'node:http';
import { Server as HttpsServer } from 'node:https';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { startApp } from '../app.ts';
import { formatWarnings } from '../config/load/mistakes.ts';
import type { ConfigInput } from '../config/schema/config-schema.ts';
import { Mount } from '../http/server/mounted-request-source.ts';
import type { ReloadResult } from '../process/reload-result.ts';
import type { App } from '../process/app-types.ts';
import { readVersion } from '../process/version.ts';
import { checkNames } from './unknown-options.ts';
import { ConfigError } from './config-error.ts';
import type { ConfigOrigin } from './config-origin.ts';
import { readConfig } from './plugin-config.ts';
import { logInto } from './host-logger.ts';

/** A registry of metrics, such as prom-client’s. */
export interface HostRegistry {
  registerMetric(metric: object): void;
  removeSingleMetric(name: string): void;
}

/** What can be asked of a proxy that is mounted. */
export interface Mounted {
  /** In the text format of Prometheus. */
  metrics(): Promise<string>;
  /**
   * Puts another configuration in effect while requests go on; reads the file again when none is given. Never rejects:
   * what cannot be used is told, and the one before goes on.
   */
  reload(config?: ConfigInput): Promise<ReloadResult>;
}

export type TidegateOptions = ConfigOrigin & {
  /** Gets the metrics of the proxy, all named `tidegate_…`. One proxy can have it. */
  readonly registry?: HostRegistry | undefined;
  /** Called once, before the application is ready. */
  readonly onMounted?: ((mounted: Mounted) => void) | undefined;
};

/**
 * A Fastify plugin. Under its `prefix`, all is passed on as the configuration says: what the proxy sees of a path, its
 * routes too, is what follows the prefix. Hooks of the application run before; its parsers of bodies do not, and no other
 * route of it is changed. What is logged goes to the application's logger. When the application closes, requests in flight
 * have `drain.timeout` to end.
 * @throws ConfigError that tells every mistake of the configuration; a TypeError for options that make no sense; an Error for a
 * registry that has such metrics already, for a server of HTTP/2, for a prefix with
 * parameters, and for whatever cannot be opened: a certificate that cannot be read
 */
export async function tidegate(app: FastifyInstance, options: TidegateOptions): Promise<void> {
  checkOptions(options);
  const { prefix } = app;
  const server: unknown = app.server;
  if (!(server instanceof HttpServer || server instanceof HttpsServer)) {
    throw new TypeError('tidegate can be mounted in a server of HTTP/1.1 only, and this one speaks HTTP/2');
  }
  if (/[:*]/.test(prefix)) throw new TypeError(`tidegate needs a prefix without parameters, not ${prefix}`);
  const { warnings, ...effective } = readConfig(options);
  const logger = logInto(app.log);
  for (const warning of warnings) logger.warn(formatWarnings([warning]));
  const mount = new Mount();
  const proxy = await startApp(effective.config, {
    logger,
    version: readVersion(),
    substituted: effective.substituted,
    mount: { entrance: mount, proto: server instanceof HttpsServer ? 'https' : 'http' },
  });
  closeWith(app, proxy);
  mountRoutes(app, (request, reply) => {
    reply.hijack();
    // What hooks have given the answer: what comes from the upstream goes over it.
    for (const [name, value] of Object.entries(reply.getHeaders())) {
      if (value !== undefined && !FRAMING.has(name)) reply.raw.setHeader(name, value);
    }
    mount.take(request.raw, reply.raw, prefix.replace(/\/+$/, ''));
  });
  if (options.registry !== undefined) showMetrics(app, proxy, options.registry);
  options.onMounted?.({
    metrics: async () => (await proxy.registry?.metrics()) ?? '',
    reload: (config) => reload(proxy, config === undefined ? options : { config }, logger),
  });
}

/** Ours, and those that Fastify takes for itself and hands on. */
const NAMES = ['config', 'file', 'registry', 'onMounted', 'prefix', 'logLevel', 'logSerializers'] as const;

/** What was meant is not guessed: the wrong configuration is in front of somebody's payments. */
function checkOptions(options: TidegateOptions): void {
  checkNames(options, NAMES, 'tidegate');
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

/** How long an answer is, only who has it can say. */
const FRAMING: ReadonlySet<string> = new Set(['content-length', 'transfer-encoding', 'trailer']);

/** The body is left unread, whatever it says it is. */
function mountRoutes(app: FastifyInstance, handler: (request: FastifyRequest, reply: FastifyReply) => void): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));
  const method = app.supportedMethods;
  app.route({ method, url: '/*', handler, exposeHeadRoute: false });
  if (app.prefix !== '') app.route({ method, url: '/', handler, exposeHeadRoute: false });
}

/** The server waits for what is in flight, and that for the drain; so the drain begins first, and is over last. */
function closeWith(app: FastifyInstance, proxy: App): void {
  let drained: Promise<void> | undefined;
  app.addHook('preClose', (done) => {
    drained = proxy.drain(0);
    done();
  });
  app.addHook('onClose', async () => drained ?? proxy.close());
}

function showMetrics(app: FastifyInstance, { registry }: App, host: HostRegistry): void {
  // Those of the process are for the application to tell.
  const own = (registry?.getMetricsAsArray() ?? []).filter(({ name }) => name.startsWith('tidegate_'));
  const shown: string[] = [];
  const hide = (): void => {
    for (const name of shown) host.removeSingleMetric(name);
  };
  for (const metric of own) {
    try {
      host.registerMetric(metric);
    } catch (cause) {
      hide();
      const problem = `registry cannot take ${metric.name}; one proxy can have it, and another needs one of its own`;
      throw new Error(problem, { cause });
    }
    shown.push(metric.name);
  }
  app.addHook('onClose', (_, done) => {
    hide();
    done();
  });
}

async function reload(proxy: App, origin: ConfigOrigin, logger: Logger): Promise<ReloadResult> {
  try {
    const { warnings, ...effective } = readConfig(origin);
    const result = await proxy.apply(effective);
    if (result.kind === 'applied') for (const warning of warnings) logger.warn(formatWarnings([warning]));
    return result;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    logger.error({ problem: error.message }, 'configuration not reloaded: the one before goes on');
    return { kind: 'refused', problem: error.message };
  }
}
