import type { FastifyInstance } from 'fastify';

/**
 * Readiness of this process. The state of the upstreams does not count: if one is down, replacing this process does not help,
 * and its 503 with a Retry-After is still the best response.
 */
export interface Readiness {
  readonly phase: 'starting' | 'ready' | 'draining';
  /** Lines of `?verbose`; without effect on readiness. */
  readonly notes?: Readonly<Record<string, string>>;
}

/** GET /livez: 200 while the event loop runs. GET /readyz: 200 when ready, else 503. Both in plain text. */
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
