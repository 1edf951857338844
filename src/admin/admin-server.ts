import { STATUS_CODES } from 'node:http';
import { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify';
import type { Address } from '../config/values/listen-address.ts';
import type { Bound } from '../core/overload/resource-bound.ts';
import { NO_SCHEMAS } from '../http/server/fastify-no-schemas.ts';
import type { Format } from '../telemetry/metrics/exposition/exposition-format.ts';
import { CONTENT_TYPES } from '../telemetry/metrics/exposition/exposition-format.ts';
import { chooseFormat } from './negotiate-format.ts';
import { BoundedConnections } from './bounded-connections.ts';
import { createGuard, createWriteGuard, type Guard, pathOf } from './access-guard.ts';
import { type Readiness, serveHealth } from './health-endpoints.ts';
import { matchRoute } from './api/api-routes.ts';
import type { Operations } from './api/admin-operations.ts';
import { sendProblem, writeProblem } from './problem-response.ts';
import { refuseUnrouted, serveApi } from './serve-api.ts';
import { servePage } from './serve-page.ts';

/** What /metrics tells. */
export interface Exposition {
  metrics(format: Format): Promise<string>;
}

export interface TelemetryOptions {
  readonly listen: Address;
  readonly registry: Exposition;
  readonly readiness: () => Readiness;
}

export interface AdminOptions extends TelemetryOptions {
  /** Needed to listen anywhere but on a loopback address or a Unix socket. */
  readonly token?: string | undefined;
  /** What the API tells of; no API when absent. */
  readonly operations?: Operations | undefined;
}

export interface AdminServer {
  /** With the port that was given to it. */
  readonly address: Address;
  readonly bound: Bound;
  /** Ends all connections, those in the middle of an answer too: a drain never waits for a scrape or an open page. */
  close(): Promise<void>;
}

/** Of what may be sent to us, in milliseconds and bytes: these listeners read nothing but heads. */
const REQUEST_TIMEOUT = 10_000;
const BODY_LIMIT = 64 * 1024;
/** More than any number of probes, scrapers and open pages; a bound on what strangers may take of a telemetry port. */
const MAX_CONNECTIONS = 128;
/** Node looks for late heads only every 30 s unless told otherwise. */
const CONNECTIONS_CHECK = 1000;

/**
 * For operators: /livez, /readyz, /metrics, the API and its page, for those whom `createGuard` lets in.
 * Rejects with the error of listening (EADDRINUSE, EACCES …), or when the address needs a token and has none.
 */
export async function startAdmin({ token, operations, ...options }: AdminOptions): Promise<AdminServer> {
  return start(options, createGuard(options.listen, token), (app) => {
    if (operations === undefined) return;
    serveApi(app, operations, createWriteGuard(options.listen, token));
    servePage(app);
  });
}

/**
 * For kubelet and Prometheus, on any address and open to anyone: /livez, /readyz and /metrics, and never more than these.
 * Rejects with the error of listening.
 */
export async function startTelemetry(options: TelemetryOptions): Promise<AdminServer> {
  const { listen, registry, readiness } = options;
  return start({ listen, registry, readiness }, () => undefined);
}

async function start(
  { listen, registry, readiness }: TelemetryOptions,
  guard: Guard,
  serveMore: (app: FastifyInstance) => void = () => undefined,
): Promise<AdminServer> {
  const app = fastify({
    logger: false,
    schemaController: NO_SCHEMAS,
    forceCloseConnections: true,
    requestTimeout: REQUEST_TIMEOUT,
    http: { headersTimeout: REQUEST_TIMEOUT, connectionsCheckingInterval: CONNECTIONS_CHECK },
    bodyLimit: BODY_LIMIT,
    // Before any hook: a URL that does not decode.
    frameworkErrors: (_error, _request, reply) => {
      sendProblem(reply, 400, 'Bad Request', 'The URL is malformed.');
    },
    clientErrorHandler: (error, socket) => writeProblem(socket, error),
  });
  app.addHook('onRequest', async (request, reply) => {
    // Nor does a page of another origin read it by embedding it.
    reply.headers({
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'cross-origin-resource-policy': 'same-origin',
      // Nor is an answer a page that does anything, or that another may frame.
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'referrer-policy': 'no-referrer',
    });
    return guard(request, reply) ?? (request.is404 ? answerUnrouted(app, request, reply) : undefined);
  });
  // A 503 says when to ask again: of one that starts or goes away, that is soon known.
  app.addHook('onSend', (_request, reply, payload, done) => {
    const { statusCode } = reply;
    if ((statusCode === 503 || statusCode === 429) && !reply.hasHeader('retry-after')) reply.header('retry-after', '1');
    done(null, payload);
  });
  app.setErrorHandler<FastifyError>((error, _request, reply) =>
    sendProblem(reply, error.statusCode ?? 500, STATUS_CODES[error.statusCode ?? 500] ?? 'Error', error.message),
  );

  serveHealth(app, readiness);
  app.get('/metrics', async (request, reply) => {
    const format = chooseFormat(request.headers.accept);
    const exposition = await registry.metrics(format);
    return reply.type(CONTENT_TYPES[format]).header('vary', 'Accept').send(exposition);
  });

  serveMore(app);

  const connections = new BoundedConnections(MAX_CONNECTIONS);
  connections.watch(app.server);
  await app.listen(listen.kind === 'unix' ? { path: listen.path } : { host: listen.host, port: listen.port });
  return {
    address: addressOf(app, listen),
    get bound() {
      return connections.bound;
    },
    close: () => app.close(),
  };
}

/** Before a body is read: whatever it is, nobody asked for it. */
function answerUnrouted(app: FastifyInstance, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const path = pathOf(request);
  if (/^\/(?:api\/|drain$)/.test(path) && app.hasRoute({ method: 'GET', url: '/api/*' })) {
    const refused = refuseUnrouted(reply, matchRoute(request.method, path));
    if (refused !== undefined) return refused;
  }
  if (!app.hasRoute({ method: 'GET', url: path })) {
    return sendProblem(reply, 404, 'Not Found', 'There is nothing here.');
  }
  reply.header('allow', 'GET, HEAD');
  return sendProblem(reply, 405, 'Method Not Allowed', 'Use GET or HEAD.');
}

function addressOf(app: FastifyInstance, listen: Address): Address {
  const bound = app.server.address();
  return typeof bound === 'object' && bound !== null ? { kind: 'tcp', host: bound.address, port: bound.port } : listen;
}
