import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Explanation } from '../observe/story/explain.ts';
import { renderExplanation } from '../observe/story/render-explanation.ts';
import { sendProblem } from './problem.ts';

/** By the id that the answer carried in `Tidegate-Request-Id`. */
export type FindExplanation = (id: string) => Promise<Explanation | undefined>;

const UNKNOWN =
  'No story of this request is kept. It may be too long ago, or it went well and was not sampled; ' +
  'or it came to another process: the id is the one of Tidegate-Request-Id.';

/** GET /explain/ID: why a request ended as it did, as JSON, or as text for people where that is asked for. */
export function serveExplain(app: FastifyInstance, find: FindExplanation): void {
  app.get<{ Params: { id: string } }>('/explain/:id', async (request, reply) => {
    const explanation = await find(request.params.id);
    if (explanation === undefined) return sendProblem(reply, 404, 'Not Found', UNKNOWN);
    reply.header('vary', 'accept');
    return prefersText(request) ? sendText(reply, explanation) : reply.send(explanation);
  });
}

function sendText(reply: FastifyReply, explanation: Explanation): FastifyReply {
  return reply.type('text/plain; charset=utf-8').send(renderExplanation(explanation));
}

/** Whoever names neither gets JSON. */
function prefersText({ headers }: FastifyRequest): boolean {
  const accept = headers.accept ?? '';
  const text = accept.indexOf('text/plain');
  const json = accept.indexOf('application/json');
  return text >= 0 && (json < 0 || text < json);
}
