/** The handlers of the API. Loaded at the first request, because the schemas delay the start and are rarely needed. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { OverrideCommand, ActionResult, AdminOperations } from './admin-operations.ts';
import { sendExplanation } from '../send-explanation.ts';
import { sendProblem } from '../problem-response.ts';
import { BlockQuerySchema, PinQuerySchema } from './action-schemas.ts';
import { openApiDocument } from './openapi.ts';
import {
  ClientsQuery,
  DeliveriesQuery,
  DeliveryQuery,
  KeysQuery,
  parseQuery,
  QUERY_SCHEMAS,
  RequestsQuery,
  TimelineQuery,
} from './query-schemas.ts';
import type { ApiRouteName } from './api-routes.ts';

export interface ApiRequest {
  readonly name: Exclude<ApiRouteName, 'events'>;
  readonly params: Readonly<Record<string, string>>;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

export async function handleApiRequest(operations: AdminOperations, apiRequest: ApiRequest): Promise<FastifyReply> {
  const { name, params, request, reply } = apiRequest;
  const { query } = request;
  switch (name) {
    case 'clients':
      return withQuery(reply, parseQuery(ClientsQuery, query), (parsedQuery) =>
        sendPage(reply, operations.clients(parsedQuery)),
      );
    case 'requests':
      return withQuery(reply, parseQuery(RequestsQuery, query), (parsedQuery) =>
        sendPage(reply, operations.requests(parsedQuery)),
      );
    case 'keys':
      return withQuery(reply, parseQuery(KeysQuery, query), async (parsedQuery) =>
        sendActionResult(reply, await operations.keys(parsedQuery), 'key'),
      );
    case 'key':
      return withQuery(reply, parseQuery(QUERY_SCHEMAS.key, query), async () =>
        sendActionResult(reply, await operations.key(params['id'] ?? ''), 'key'),
      );
    case 'forget':
      return withQuery(reply, parseQuery(QUERY_SCHEMAS.forget, query), async () => {
        return sendActionResult(reply, await operations.forgetKey(params['id'] ?? '', clientAddressOf(request)), 'key');
      });
    case 'deliveries':
      return withQuery(reply, parseQuery(DeliveriesQuery, query), async (parsedQuery) =>
        sendActionResult(reply, await operations.deliveries.list(parsedQuery), 'delivery'),
      );
    case 'delivery':
      return withQuery(reply, parseQuery(DeliveryQuery, query), async (parsedQuery) =>
        sendActionResult(reply, await operations.deliveries.find(params['id'] ?? '', parsedQuery), 'delivery'),
      );
    case 'retry':
    case 'cancel':
      return withQuery(reply, parseQuery(QUERY_SCHEMAS[name], query), async () => {
        const changed = await operations.deliveries[name](params['id'] ?? '', clientAddressOf(request));
        return sendActionResult(reply, changed, 'delivery');
      });
    case 'timeline':
      return withQuery(reply, parseQuery(TimelineQuery, query), async (parsedQuery) => {
        return reply.send({ events: await operations.timeline(parsedQuery) });
      });
    case 'pin':
      return withQuery(reply, parseQuery(PinQuerySchema, query), ({ rate }) =>
        overrideUpstream(operations, apiRequest, { do: 'pin', rate }),
      );
    case 'block':
      return withQuery(reply, parseQuery(BlockQuerySchema, query), ({ for: time }) => {
        return overrideUpstream(operations, apiRequest, { do: 'block', time });
      });
    case 'unpin':
    case 'unblock':
      return withQuery(reply, parseQuery(QUERY_SCHEMAS[name], query), () =>
        overrideUpstream(operations, apiRequest, { do: name }),
      );
    case 'reset':
      return withQuery(reply, parseQuery(QUERY_SCHEMAS.reset, query), async () => {
        return sendActionResult(reply, await operations.reset(params['key'] ?? '', clientAddressOf(request)), 'client');
      });
    case 'clientQuotas':
      return withQuery(reply, parseQuery(QUERY_SCHEMAS.clientQuotas, query), async () =>
        sendActionResult(reply, await operations.clientQuotas.find(params['key'] ?? ''), 'client'),
      );
    case 'resetQuotas':
      return withQuery(reply, parseQuery(QUERY_SCHEMAS.resetQuotas, query), async () => {
        const changed = await operations.clientQuotas.reset(params['key'] ?? '', clientAddressOf(request));
        return sendActionResult(reply, changed, 'client');
      });
    case 'status':
      return withQuery(reply, parseQuery(QUERY_SCHEMAS.status, query), async () =>
        reply.send(await operations.status()),
      );
    case 'history':
      return withQuery(reply, parseQuery(QUERY_SCHEMAS.history, query), () => reply.send(operations.history()));
    case 'config':
      return withQuery(reply, parseQuery(QUERY_SCHEMAS.config, query), () => reply.send(operations.config()));
    case 'openapi':
      return withQuery(reply, parseQuery(QUERY_SCHEMAS.openapi, query), () => reply.send(openApiDocument()));
    case 'explain':
      return withQuery(reply, parseQuery(QUERY_SCHEMAS.explain, query), async () => {
        return sendExplanation(request, reply, await operations.explain(params['id'] ?? ''));
      });
    case 'drain':
      return withQuery(reply, parseQuery(QUERY_SCHEMAS.drain, query), () =>
        reply.send(operations.drain(clientAddressOf(request))),
      );
    case 'validate':
      return withQuery(reply, parseQuery(QUERY_SCHEMAS.validate, query), () => validate(operations, request, reply));
  }
}

/** Sends 400 if a route without parameters has a query; returns undefined otherwise. */
export function rejectQuery(request: FastifyRequest, reply: FastifyReply): FastifyReply | undefined {
  const query = parseQuery(QUERY_SCHEMAS.events, request.query);
  return query.ok ? undefined : sendProblem(reply, 400, 'Bad Request', query.problem);
}

async function withQuery<T>(
  reply: FastifyReply,
  query: ReturnType<typeof parseQuery<T>>,
  handle: (query: T) => FastifyReply | Promise<FastifyReply>,
): Promise<FastifyReply> {
  return query.ok ? handle(query.value) : sendProblem(reply, 400, 'Bad Request', query.problem);
}

async function sendPage(reply: FastifyReply, page: Promise<object | undefined>): Promise<FastifyReply> {
  const found = await page;
  if (found !== undefined) return reply.send(found);
  return sendProblem(reply, 400, 'Bad Request', "cursor: not a 'next' value of this API; start again without a cursor");
}

async function overrideUpstream(
  operations: AdminOperations,
  apiRequest: ApiRequest,
  command: OverrideCommand,
): Promise<FastifyReply> {
  const { params, request, reply } = apiRequest;
  return sendActionResult(
    reply,
    await operations.overrideUpstream(params['name'] ?? '', command, clientAddressOf(request)),
    'upstream',
  );
}

function sendActionResult(reply: FastifyReply, done: ActionResult<object>, noun: string): FastifyReply {
  switch (done.kind) {
    case 'done':
      return reply.send(done.row);
    case 'absent':
      return sendProblem(reply, 404, 'Not Found', done.why);
    case 'refused':
      return sendProblem(reply, 409, 'Conflict', done.why);
    case 'unavailable':
      return sendProblem(reply, 503, 'Service Unavailable', done.why);
    case 'unknown': {
      const hint = done.nearest === undefined ? '' : ` Did you mean ${done.nearest}?`;
      return sendProblem(reply, 404, 'Not Found', `No such ${noun}.${hint}`);
    }
  }
}

function validate(operations: AdminOperations, { body }: FastifyRequest, reply: FastifyReply): FastifyReply {
  const text = typeof body === 'string' ? body : '';
  if (text === '') return sendProblem(reply, 400, 'Bad Request', 'Send the configuration in the body, as YAML.');
  const validation = operations.validate(text);
  if (validation.kind === 'valid') return reply.send({ valid: true, warnings: validation.warnings });
  const { mistakes } = validation;
  const detail =
    mistakes.length === 1 ? 'The configuration has an error.' : `The configuration has ${mistakes.length} errors.`;
  return sendProblem(reply, 422, 'Unprocessable Content', detail, { mistakes });
}

/** Address of the operator, for the log and the timeline. A Unix socket has none. */
function clientAddressOf({ socket }: FastifyRequest): string {
  return socket.remoteAddress ?? 'a local socket';
}
