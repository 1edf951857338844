import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Match } from './api/api-routes.ts';
import { matchRoute } from './api/api-routes.ts';
import { Feed } from './event-broadcaster.ts';
import type { Guard } from './access-guard.ts';
import { pathOf } from './access-guard.ts';
import type { Operations } from './api/admin-operations.ts';
import { sendProblem } from './problem-response.ts';

/** Of a body, in bytes: a configuration is what is longest. */
const BODY_LIMIT = 256 * 1024;

/**
 * The admin API: whatever is asked below /api and /explain, and /drain.
 * @param guardWrites asked before anything is changed
 */
export function serveApi(app: FastifyInstance, operations: Operations, guardWrites: Guard): void {
  const feed = new Feed(operations);
  void app.register((scope, _options, done) => {
    // Text, whatever it is called: before it is read, what it is called has been looked at.
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, parsed) => parsed(null, body));
    scope.addHook('onRequest', (request, reply, next) => {
      const match = matchRoute(request.method, pathOf(request));
      const isWrite = request.method === 'POST';
      const refused =
        refuseUnrouted(reply, match) ??
        (isWrite ? (guardWrites(request, reply) ?? refuseType(request, reply, match)) : undefined);
      if (refused === undefined) next();
    });
    const handler = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> =>
      answer({ operations, feed }, request, reply);
    scope.all('/api/*', { bodyLimit: BODY_LIMIT }, handler);
    scope.all('/explain/*', handler);
    scope.all('/drain', handler);
    done();
  });
}

/** Undefined where there is such a route. */
export function refuseUnrouted(reply: FastifyReply, match: Match): FastifyReply | undefined {
  switch (match.kind) {
    case 'route':
      return undefined;
    case 'method':
      reply.header('allow', match.allow);
      return sendProblem(reply, 405, 'Method Not Allowed', `Use ${match.allow.replace(', ', ' or ')}.`);
    case 'unknown': {
      const hint = match.nearest === undefined ? '' : ` Did you mean ${match.nearest}?`;
      return sendProblem(
        reply,
        404,
        'Not Found',
        `There is nothing here.${hint} /api/openapi.json tells what there is.`,
      );
    }
  }
}

/**
 * A form of another page can send some types without asking: those that it cannot are enough.
 * Undefined where it is one of those.
 */
function refuseType(request: FastifyRequest, reply: FastifyReply, match: Match): FastifyReply | undefined {
  const type = request.headers['content-type']?.split(';')[0]?.trim().toLowerCase();
  const takes = match.kind === 'route' && match.name === 'validate' ? YAML : JSON_ONLY;
  if (type === undefined || takes.includes(type)) return undefined;
  return sendProblem(reply, 415, 'Unsupported Media Type', `Send ${takes.join(' or ')}, or no body.`);
}

const JSON_ONLY = ['application/json'];
const YAML = ['application/yaml', 'application/json'];

interface Served {
  readonly operations: Operations;
  readonly feed: Feed;
}

async function answer(
  { operations, feed }: Served,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const match = matchRoute(request.method, pathOf(request));
  if (match.kind !== 'route') return reply; // it has been answered
  const { name, params } = match;
  const { answerApi, refuseQuery } = await import('./api/handle-api-request.ts');
  if (name !== 'events') return answerApi(operations, { name, params, request, reply });
  const refused = refuseQuery(request, reply);
  if (refused !== undefined) return refused;
  if (feed.isFull) {
    reply.header('retry-after', '30');
    return sendProblem(reply, 503, 'Service Unavailable', 'As many watch as may. Close a page that nobody looks at.');
  }
  reply.hijack();
  feed.open(reply.raw, reply.getHeaders());
  return reply;
}
