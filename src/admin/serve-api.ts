import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { RouteMatchResult } from './api/api-routes.ts';
import { matchApiRoute } from './api/api-routes.ts';
import { EventBroadcaster } from './event-broadcaster.ts';
import type { AccessGuard } from './access-guard.ts';
import { requestPath } from './access-guard.ts';
import type { AdminOperations } from './api/admin-operations.ts';
import { sendProblem } from './problem-response.ts';
import { trimSpace } from '../core/http-semantics/list-field.ts';

/** Maximum body in bytes; the longest body is a configuration to validate. */
const BODY_LIMIT = 256 * 1024;

/**
 * Registers the admin API: the paths below /api and /explain, and /drain.
 * @param guardWrites guard of the actions, and of what only an operator may read
 */
export function serveApi(app: FastifyInstance, operations: AdminOperations, guardWrites: AccessGuard): void {
  const feed = new EventBroadcaster(operations);
  void app.register((scope, _options, done) => {
    // Bodies are read as text; the onRequest hook has checked the content type before.
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, parsed) => parsed(null, body));
    scope.addHook('onRequest', (request, reply, next) => {
      const match = matchApiRoute(request.method, requestPath(request));
      const isGuarded = request.method === 'POST' || request.method === 'DELETE' || isForMessage(request, match);
      const rejected =
        rejectUnrouted(reply, match) ??
        (isGuarded ? (guardWrites(request, reply) ?? rejectContentType(request, reply, match)) : undefined);
      if (rejected === undefined) next();
    });
    const handler = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> =>
      dispatch({ operations, feed }, request, reply);
    scope.all('/api/*', { bodyLimit: BODY_LIMIT }, handler);
    scope.all('/explain/*', handler);
    scope.all('/drain', handler);
    done();
  });
}

/** Whether the response would contain what a client has sent, such as its credentials. */
function isForMessage({ query }: FastifyRequest, match: RouteMatchResult): boolean {
  if (match.kind !== 'route' || match.name !== 'delivery') return false;
  const wanted: unknown = typeof query === 'object' && query !== null ? Reflect.get(query, 'message') : undefined;
  return wanted !== undefined && wanted !== 'false';
}

/** Sends 404 or 405 if there is no such route; returns undefined if there is. */
export function rejectUnrouted(reply: FastifyReply, match: RouteMatchResult): FastifyReply | undefined {
  switch (match.kind) {
    case 'route':
      return undefined;
    case 'method':
      reply.header('allow', match.allow);
      return sendProblem(reply, 405, 'Method Not Allowed', `Use ${match.allow.replaceAll(', ', ' or ')}.`);
    case 'unknown': {
      const hint = match.nearest === undefined ? '' : ` Did you mean ${match.nearest}?`;
      return sendProblem(reply, 404, 'Not Found', `No such path.${hint} /api/openapi.json lists all paths.`);
    }
  }
}

/**
 * Sends 415 unless the content type is one that a cross-site form cannot send without a preflight request.
 * Returns undefined if the type is accepted.
 */
function rejectContentType(
  request: FastifyRequest,
  reply: FastifyReply,
  match: RouteMatchResult,
): FastifyReply | undefined {
  const contentType = request.headers['content-type'];
  const type = contentType === undefined ? undefined : trimSpace(contentType.split(';', 1)[0] ?? '').toLowerCase();
  const accepted = match.kind === 'route' && match.name === 'validate' ? YAML_TYPES : JSON_TYPES;
  if (type === undefined || accepted.includes(type)) return undefined;
  return sendProblem(reply, 415, 'Unsupported Media Type', `Send ${accepted.join(' or ')}, or no body.`);
}

const JSON_TYPES = ['application/json'];
const YAML_TYPES = ['application/yaml', 'application/json'];

interface ApiContext {
  readonly operations: AdminOperations;
  readonly feed: EventBroadcaster;
}

async function dispatch(
  { operations, feed }: ApiContext,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const match = matchApiRoute(request.method, requestPath(request));
  if (match.kind !== 'route') return reply; // the hook has sent the response
  const { name, params } = match;
  const { handleApiRequest, rejectQuery } = await import('./api/handle-api-request.ts');
  if (name !== 'events') return handleApiRequest(operations, { name, params, request, reply });
  const rejected = rejectQuery(request, reply);
  if (rejected !== undefined) return rejected;
  if (feed.isFull) {
    reply.header('retry-after', '30');
    return sendProblem(reply, 503, 'Service Unavailable', 'Too many viewers are connected. Close an unused page.');
  }
  reply.hijack();
  feed.open(reply.raw, reply.getHeaders());
  return reply;
}
