import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Explanation } from '../telemetry/explanations/build-explanation.ts';
import { parseListField, trimSpace } from '../core/http-semantics/list-field.ts';
import { renderExplanation } from '../telemetry/explanations/render-explanation.ts';
import { sendProblem } from './problem-response.ts';

const NOT_RECORDED =
  'No record of this request. It may be too old, it may have succeeded without being sampled, or another process handled it. ' +
  'The id is the Tidegate-Request-Id of its response.';

/** Sends an explanation as JSON, or as text if the client prefers text/plain. */
export function sendExplanation(
  request: FastifyRequest,
  reply: FastifyReply,
  explanation: Explanation | undefined,
): FastifyReply {
  if (explanation === undefined) return sendProblem(reply, 404, 'Not Found', NOT_RECORDED);
  reply.header('vary', 'accept');
  if (!prefersText(request)) return reply.send(explanation);
  return reply.type('text/plain; charset=utf-8').send(renderExplanation(explanation));
}

/** Whether Accept names text/plain before JSON. */
function prefersText({ headers }: FastifyRequest): boolean {
  const types = parseListField(headers.accept?.toLowerCase()).map((range) => trimSpace(range.split(';', 1)[0] ?? ''));
  const text = types.indexOf('text/plain');
  const json = types.indexOf('application/json');
  return text >= 0 && (json < 0 || text < json);
}
