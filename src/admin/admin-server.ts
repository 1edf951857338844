import { setTimeout as sleep } from 'node:timers/promises';
import { STATUS_CODES } from 'node:http';
import { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import type { Address } from '../config/values/listen-address.ts';
import type { ResourceBound } from '../core/overload/resource-bound.ts';
import { NO_SCHEMAS } from '../http/server/fastify-no-schemas.ts';
import type { ExpositionFormat } from '../telemetry/metrics/exposition/exposition-format.ts';
import { EXPOSITION_CONTENT_TYPES } from '../telemetry/metrics/exposition/exposition-format.ts';
import { negotiateFormat } from './negotiate-format.ts';
import { PacedExposition } from './paced-exposition.ts';
import { BoundedConnections } from './bounded-connections.ts';
import { createReadGuard, createWriteGuard, type AccessGuard, requestPath } from './access-guard.ts';
import { type Readiness, serveHealth } from './health-endpoints.ts';
import { matchApiRoute } from './api/api-routes.ts';
import type { AdminOperations } from './api/admin-operations.ts';
import { sendProblem, writeProblemToSocket } from './problem-response.ts';
import { rejectUnrouted, serveApi } from './serve-api.ts';
import { servePage } from './serve-page.ts';

/** The source of /metrics. */
export interface MetricsSource {
  metrics(format: ExpositionFormat): Promise<string>;
}

export interface TelemetryOptions {
  readonly listen: Address;
  readonly registry: MetricsSource;
  readonly readiness: () => Readiness;
}

export interface AdminOptions extends TelemetryOptions {
  /** Required unless `listen` is a loopback address or a Unix socket. */
  readonly token?: string | undefined;
  /** Operations of the API; undefined: no API and no page. */
  readonly operations?: AdminOperations | undefined;
}

export interface AdminServer {
  /** The address in use, with the port that the system chose. */
  readonly address: Address;
  readonly bound: ResourceBound;
  /** Closes all connections, busy ones too: a drain never waits for a scrape or an open page. */
  close(): Promise<void>;
}

/** Limits of a request, in milliseconds and bytes. */
const REQUEST_TIMEOUT = 10_000;
const BODY_LIMIT = 64 * 1024;
/** More than probes, scrapers and pages need; bounds what strangers can use of a public telemetry port. */
const MAX_CONNECTIONS = 128;
/** Milliseconds between checks for late request heads; Node's default is 30 s. */
const CONNECTIONS_CHECK_INTERVAL = 1000;

/**
 * Starts the admin port: /livez, /readyz, /metrics, the API and its page, behind the guards of access-guard.ts.
 * Rejects with the error of listening (EADDRINUSE, EACCES …), or if the address requires a token and there is none.
 */
export async function startAdminServer({ token, operations, ...options }: AdminOptions): Promise<AdminServer> {
  return startListener(options, createReadGuard(options.listen, token), (app) => {
    if (operations === undefined) return;
    serveApi(app, operations, createWriteGuard(options.listen, token));
    servePage(app);
  });
}

/**
 * Starts the telemetry port for kubelet and Prometheus: /livez, /readyz and /metrics only, without a token, on any address.
 * Rejects with the error of listening.
 */
export async function startTelemetryServer(options: TelemetryOptions): Promise<AdminServer> {
  const { listen, registry, readiness } = options;
  return startListener({ listen, registry, readiness }, () => undefined);
}

async function startListener(
  { listen, registry, readiness }: TelemetryOptions,
  guard: AccessGuard,
  registerRoutes: (app: FastifyInstance) => void = () => undefined,
): Promise<AdminServer> {
  const app = fastify({
    logger: false,
    schemaController: NO_SCHEMAS,
    forceCloseConnections: true,
    requestTimeout: REQUEST_TIMEOUT,
    http: { headersTimeout: REQUEST_TIMEOUT, connectionsCheckingInterval: CONNECTIONS_CHECK_INTERVAL },
    bodyLimit: BODY_LIMIT,
    // A URL that cannot be decoded fails before any hook runs.
    frameworkErrors: (_error, _request, reply) => {
      sendProblem(reply, 400, 'Bad Request', 'The URL is malformed.');
    },
    clientErrorHandler: (error, socket) => writeProblemToSocket(socket, error),
  });
  app.addHook('onRequest', async (request, reply) => {
    // A page of another origin must not read a response by embedding it,
    reply.headers({
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'cross-origin-resource-policy': 'same-origin',
      // and no response may act as a page or be framed.
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'referrer-policy': 'no-referrer',
    });
    return guard(request, reply) ?? (request.is404 ? rejectUnknownPath(app, request, reply) : undefined);
  });
  // Starting and draining end soon, so a 503 asks the client to retry after a second.
  app.addHook('onSend', (_request, reply, payload, done) => {
    const { statusCode } = reply;
    if ((statusCode === 503 || statusCode === 429) && !reply.hasHeader('retry-after')) reply.header('retry-after', '1');
    done(null, payload);
  });
  app.setErrorHandler<FastifyError>((error, _request, reply) =>
    sendProblem(reply, error.statusCode ?? 500, STATUS_CODES[error.statusCode ?? 500] ?? 'Error', error.message),
  );

  serveHealth(app, readiness);
  const metrics = new PacedExposition({
    render: (format) => registry.metrics(format),
    now: () => performance.now(),
    sleep,
  });
  app.get('/metrics', async (request, reply) => {
    const format = negotiateFormat(request.headers.accept);
    const exposition = await metrics.read(format);
    return reply.type(EXPOSITION_CONTENT_TYPES[format]).header('vary', 'Accept').send(exposition);
  });

  registerRoutes(app);

  const connections = new BoundedConnections(MAX_CONNECTIONS);
  connections.attach(app.server);
  await app.listen(listen.kind === 'unix' ? { path: listen.path } : { host: listen.host, port: listen.port });
  return {
    address: boundAddress(app, listen),
    get bound() {
      return connections.bound;
    },
    close: () => app.close(),
  };
}

/** Rejects unknown paths before their body is read. */
function rejectUnknownPath(app: FastifyInstance, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const path = requestPath(request);
  if (/^\/(?:api\/|drain$)/.test(path) && app.hasRoute({ method: 'GET', url: '/api/*' })) {
    const rejected = rejectUnrouted(reply, matchApiRoute(request.method, path));
    if (rejected !== undefined) return rejected;
  }
  if (!app.hasRoute({ method: 'GET', url: path })) {
    return sendProblem(reply, 404, 'Not Found', 'No such path.');
  }
  reply.header('allow', 'GET, HEAD');
  return sendProblem(reply, 405, 'Method Not Allowed', 'Use GET or HEAD.');
}

function boundAddress(app: FastifyInstance, listen: Address): Address {
  const bound = app.server.address();
  return typeof bound === 'object' && bound !== null ? { kind: 'tcp', host: bound.address, port: bound.port } : listen;
}
