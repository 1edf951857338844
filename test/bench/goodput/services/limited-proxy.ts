import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import { Pool } from 'undici';
import type { InFlightLimit } from '../../control/baselines/in-flight-meter.ts';

const CONNECTIONS = 256;

/**
 * A proxy for requests without a body, with a limit on requests in flight and nothing else: it answers 503 to requests beyond the
 * limit. A request counts until its response is complete. A failure, and a client that leaves before the response, count as drops.
 */
export function createLimitedProxy(upstream: string, limit: InFlightLimit): Server {
  const pool = new Pool(upstream, { connections: CONNECTIONS, pipelining: 1 });
  let inFlight = 0;

  async function forward({ method = 'GET', url = '/' }: IncomingMessage, response: ServerResponse): Promise<void> {
    inFlight += 1;
    const among = inFlight;
    const sentAt = performance.now();
    const sample = (sentAmong: number, didDrop: boolean): void => {
      const now = performance.now();
      limit.update(now - sentAt, sentAmong, didDrop, { now, inFlight });
    };
    const leaving = new AbortController();
    response.once('close', () => leaving.abort());
    try {
      const answer = await pool.request({ method, path: url, signal: leaving.signal });
      const body = Buffer.from(await answer.body.arrayBuffer());
      sample(among, answer.statusCode === 429 || answer.statusCode >= 500);
      response.writeHead(answer.statusCode, { 'content-length': body.length }).end(body);
    } catch {
      sample(0, true);
      if (!response.destroyed) response.writeHead(502).end();
    } finally {
      inFlight -= 1;
    }
  }

  const server = createServer((request, response) => {
    request.resume();
    if (inFlight < limit.limit) void forward(request, response);
    else response.writeHead(503).end();
  });
  server.keepAliveTimeout = 600_000;
  server.once('close', () => void pool.destroy());
  return server;
}
