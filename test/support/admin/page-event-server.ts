/** Serves the page's files and an admin API with events from the test, for states that a real one reaches slowly. */
import type { ServerResponse } from 'node:http';
import { fastify } from 'fastify';
import type { DeliveryDetails } from '../../../src/admin/page/api-types.ts';
import { servePage } from '../../../src/admin/serve-page.ts';
import { NO_SCHEMAS } from '../../../src/http/server/fastify-no-schemas.ts';
import { atEnd } from '../at-end.ts';

export type PageEvent = readonly [name: string, data: unknown];

export interface PageEventServer {
  readonly url: string;
  /** Sends events to all viewers. */
  readonly send: (...events: readonly PageEvent[]) => void;
}

/**
 * The server is closed when the test ends.
 * @param events sent to each new viewer
 * @param deliveries what the API returns for any query
 */
export async function servePageEvents(
  events: readonly PageEvent[],
  deliveries: readonly DeliveryDetails[] = [],
): Promise<PageEventServer> {
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
  app.get('/api/history', () => ({ upstreams: [] }));
  app.get('/api/keys', () => ({ total: 0, matching: 0, keys: [] }));
  app.get('/api/timeline', () => ({ events: [] }));
  app.get('/api/deliveries', () => ({ deliveries, next: null }));
  app.get('/api/deliveries/:id', () => deliveries[0]);
  atEnd(() => app.close());
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  const send: PageEventServer['send'] = (...more) => {
    for (const viewer of viewers) viewer.write(more.map(frame).join(''));
  };
  return { url, send };
}

function frame([name, data]: PageEvent): string {
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}
