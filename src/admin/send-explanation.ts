import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Explanation } from '../telemetry/explanations/build-explanation.ts';
import { listElements } from '../core/http-semantics/list-field.ts';
import { renderExplanation } from '../telemetry/explanations/render-explanation.ts';
import { sendProblem } from './problem-response.ts';

const UNKNOWN =
  'No story of this request is kept. It may be too long ago, or it went well and was not sampled; ' +
  'or it came to another process: the id is the one of Tidegate-Request-Id.';

/** Why a request ended as it did, as JSON, or as text for people where that is asked for. */
export function sendExplanation(
  request: FastifyRequest,
  reply: FastifyReply,
  explanation: Explanation | undefined,
): FastifyReply {
  if (explanation === undefined) return sendProblem(reply, 404, 'Not Found', UNKNOWN);
  reply.header('vary', 'accept');
  if (!prefersText(request)) return reply.send(explanation);
  return reply.type('text/plain; charset=utf-8').send(renderExplanation(explanation));
}

/** Whoever names neither gets JSON. */
function prefersText({ headers }: FastifyRequest): boolean {
  const types = listElements(headers.accept?.toLowerCase()).map((range) => range.replace(/[\t ]*;.*$/s, ''));
  const text = types.indexOf('text/plain');
  const json = types.indexOf('application/json');
  return text >= 0 && (json < 0 || text < json);
}
