/** What the routes of the API answer. Loaded at the first question: schemas take time to make, and most starts want none. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Command, Done, Operations } from './admin-operations.ts';
import { sendExplanation } from '../send-explanation.ts';
import { sendProblem } from '../problem-response.ts';
import { BlockQuery, PinQuery } from './action-schemas.ts';
import { describeApi } from './openapi.ts';
import { ClientsQuery, parseQuery, QUERIES, RequestsQuery, TimelineQuery } from './query-schemas.ts';
import type { RouteName } from './api-routes.ts';

export interface Question {
  readonly name: Exclude<RouteName, 'events'>;
  readonly params: Readonly<Record<string, string>>;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

export async function answerApi(operations: Operations, question: Question): Promise<FastifyReply> {
  const { name, params, request, reply } = question;
  const { query } = request;
  switch (name) {
    case 'clients':
      return given(reply, parseQuery(ClientsQuery, query), (asked) => sendPage(reply, operations.clients(asked)));
    case 'requests':
      return given(reply, parseQuery(RequestsQuery, query), (asked) => sendPage(reply, operations.requests(asked)));
    case 'timeline':
      return given(reply, parseQuery(TimelineQuery, query), async ({ limit }) => {
        return reply.send({ events: await operations.timeline(limit) });
      });
    case 'pin':
      return given(reply, parseQuery(PinQuery, query), ({ rate }) => steer(operations, question, { do: 'pin', rate }));
    case 'block':
      return given(reply, parseQuery(BlockQuery, query), ({ for: time }) => {
        return steer(operations, question, { do: 'block', time });
      });
    case 'unpin':
    case 'unblock':
      return given(reply, parseQuery(QUERIES[name], query), () => steer(operations, question, { do: name }));
    case 'reset':
      return given(reply, parseQuery(QUERIES.reset, query), async () => {
        return sendDone(reply, await operations.reset(params['key'] ?? '', whereOf(request)), 'client');
      });
    case 'status':
      return given(reply, parseQuery(QUERIES.status, query), async () => reply.send(await operations.status()));
    case 'config':
      return given(reply, parseQuery(QUERIES.config, query), () => reply.send(operations.config()));
    case 'openapi':
      return given(reply, parseQuery(QUERIES.openapi, query), () => reply.send(describeApi()));
    case 'explain':
      return given(reply, parseQuery(QUERIES.explain, query), async () => {
        return sendExplanation(request, reply, await operations.explain(params['id'] ?? ''));
      });
    case 'drain':
      return given(reply, parseQuery(QUERIES.drain, query), () => reply.send(operations.drain(whereOf(request))));
    case 'validate':
      return given(reply, parseQuery(QUERIES.validate, query), () => validate(operations, request, reply));
  }
}

/** Of a route that takes no parameters. Undefined where there are none. */
export function refuseQuery(request: FastifyRequest, reply: FastifyReply): FastifyReply | undefined {
  const query = parseQuery(QUERIES.events, request.query);
  return query.ok ? undefined : sendProblem(reply, 400, 'Bad Request', query.problem);
}

async function given<T>(
  reply: FastifyReply,
  query: ReturnType<typeof parseQuery<T>>,
  answer: (query: T) => FastifyReply | Promise<FastifyReply>,
): Promise<FastifyReply> {
  return query.ok ? answer(query.value) : sendProblem(reply, 400, 'Bad Request', query.problem);
}

async function sendPage(reply: FastifyReply, page: Promise<object | undefined>): Promise<FastifyReply> {
  const found = await page;
  if (found !== undefined) return reply.send(found);
  return sendProblem(reply, 400, 'Bad Request', "cursor: not one that was given as 'next': begin without it");
}

async function steer(operations: Operations, question: Question, command: Command): Promise<FastifyReply> {
  const { params, request, reply } = question;
  return sendDone(reply, await operations.steer(params['name'] ?? '', command, whereOf(request)), 'upstream');
}

function sendDone(reply: FastifyReply, done: Done<object>, what: string): FastifyReply {
  switch (done.kind) {
    case 'done':
      return reply.send(done.row);
    case 'refused':
      return sendProblem(reply, 409, 'Conflict', done.why);
    case 'unknown': {
      const hint = done.nearest === undefined ? '' : ` Did you mean ${done.nearest}?`;
      return sendProblem(reply, 404, 'Not Found', `There is no such ${what}.${hint}`);
    }
  }
}

function validate(operations: Operations, { body }: FastifyRequest, reply: FastifyReply): FastifyReply {
  const text = typeof body === 'string' ? body : '';
  if (text === '') return sendProblem(reply, 400, 'Bad Request', 'Send the configuration as the body, in YAML.');
  const validation = operations.validate(text);
  if (validation.kind === 'valid') return reply.send({ valid: true, warnings: validation.warnings });
  const { mistakes } = validation;
  const detail = mistakes.length === 1 ? 'There is a mistake in it.' : `There are ${mistakes.length} mistakes in it.`;
  return sendProblem(reply, 422, 'Unprocessable Content', detail, { mistakes });
}

/** Where who says so is: for the log, and for others who watch. A Unix socket has no address. */
function whereOf({ socket }: FastifyRequest): string {
  return socket.remoteAddress ?? 'a local socket';
}
