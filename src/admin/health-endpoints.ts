import type { FastifyInstance } from 'fastify';

/**
 * Whether requests should be sent here. Only our own life decides: when the third party is down, replacing this process
 * helps nobody, and the answers it gives (503 with a Retry-After) are still the best there are.
 */
export interface Readiness {
  readonly phase: 'starting' | 'ready' | 'draining';
  /** Told by `?verbose`, one line each; decides nothing. */
  readonly notes?: Readonly<Record<string, string>>;
}

/** GET /livez: the event loop turns. GET /readyz: 200 when ready, else 503. Both in plain text. */
export function serveHealth(app: FastifyInstance, readiness: () => Readiness): void {
  app.get('/livez', (_request, reply) => reply.type('text/plain; charset=utf-8').send('live\n'));

  app.get<{ Querystring: { verbose?: string } }>('/readyz', (request, reply) => {
    const { phase, notes = {} } = readiness();
    const lines: string[] = [phase];
    if (request.query.verbose !== undefined) {
      for (const [name, note] of Object.entries(notes)) lines.push(`${name}: ${note}`);
    }
    return reply
      .code(phase === 'ready' ? 200 : 503)
      .type('text/plain; charset=utf-8')
      .send(`${lines.join('\n')}\n`);
  });
}
