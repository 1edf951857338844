/** The page's own files, and an admin API that tells what a test has it tell: what a real one tells only after long waits. */
import type { ServerResponse } from 'node:http';
import { fastify } from 'fastify';
import { onTestFinished } from 'vitest';
import { servePage } from '../../src/admin/serve-page.ts';
import { NO_SCHEMAS } from '../../src/http/server/fastify-no-schemas.ts';

export type Told = readonly [name: string, data: unknown];

export interface TellingPage {
  readonly url: string;
  /** To all who watch. */
  readonly tell: (...events: readonly Told[]) => void;
}

/** @param events told to whoever comes. Closed when the test ends. */
export async function tellPage(events: readonly Told[]): Promise<TellingPage> {
  const viewers: ServerResponse[] = [];
  const app = fastify({ forceCloseConnections: true, schemaController: NO_SCHEMAS });
  servePage(app);
  app.get('/api/events', (_request, reply) => {
    reply.hijack();
    reply.raw.writeHead(200, { 'content-type': 'text/event-stream' });
    reply.raw.write(events.map(frame).join(''));
    viewers.push(reply.raw);
  });
  app.get('/api/requests', () => ({ requests: [], next: null }));
  app.get('/api/timeline', () => ({ events: [] }));
  onTestFinished(() => app.close());
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  const tell: TellingPage['tell'] = (...more) => {
    for (const viewer of viewers) viewer.write(more.map(frame).join(''));
  };
  return { url, tell };
}

function frame([name, data]: Told): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}
