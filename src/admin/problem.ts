import type { FastifyReply } from 'fastify';

/** Answers in RFC 9457's form. */
export function sendProblem(reply: FastifyReply, status: number, title: string, detail: string): FastifyReply {
  return reply
    .code(status)
    .type('application/problem+json')
    .send(JSON.stringify({ type: 'about:blank', title, status, detail }));
}
