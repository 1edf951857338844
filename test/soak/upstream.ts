// What the soak's proxy stands in front of, in a process of its own: a practice upstream with a hidden limit, and a feed
// of large bodies both ways and of server-sent events. Tells its parent where they listen; is told what to change.

import { createHash } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PracticeSpec } from '../../src/practice/practice-spec.ts';
import { startPractice } from '../../src/practice/server.ts';
import { seededRandom } from '../../src/sim/seeded-random.ts';

export interface Change {
  readonly practice?: Partial<PracticeSpec>;
  /** The share of requests to the feed that fail. */
  readonly failing?: number;
}

export interface Places {
  readonly pay: string;
  readonly feed: string;
}

const PIECE = Buffer.alloc(16 * 1024, 'tidegate ');
const EVENT_EVERY = 100;

const seed = Number(process.argv[2] ?? 1);
const random = seededRandom(seed);
let failing = 0;

const practice = await startPractice({
  limit: { kind: 'token-bucket', rate: 150, burst: 30 },
  latency: { kind: 'lognormal', mean: 30, sigma: 0.5 },
  hints: 'retry-after',
  seed,
});
const feed = createServer({ keepAliveTimeout: 0, requestTimeout: 0 }, (request, response) => {
  serve(request, response).catch(() => response.destroy());
});
feed.listen({ host: '127.0.0.1', port: 0, backlog: 4096 });
await once(feed, 'listening');

process.on('message', (change: Change) => {
  if (change.practice !== undefined) practice.configure(change.practice);
  failing = change.failing ?? failing;
});
process.send?.({
  pay: practice.url,
  feed: `http://127.0.0.1:${(feed.address() as AddressInfo).port}`,
} satisfies Places);

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://feed');
  if (random() < failing) {
    request.resume();
    response.writeHead(random() < 0.5 ? 500 : 503).end('failed');
    return;
  }
  if (pathname.endsWith('/upload')) return take(request, response);
  request.resume();
  if (pathname.endsWith('/events')) return tell(response, Number(searchParams.get('count')));
  return give(response, Number(searchParams.get('bytes')));
}

async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const hash = createHash('sha256');
  for await (const chunk of request) hash.update(chunk as Buffer);
  response.end(hash.digest('hex'));
}

async function tell(response: ServerResponse, count: number): Promise<void> {
  response.writeHead(200, ['Content-Type', 'text/event-stream']);
  for (let i = 0; i < count && !response.destroyed; i += 1) {
    response.write(`data: ${i}\n\n`);
    await sleep(EVENT_EVERY);
  }
  response.end();
}

/** With a length, in chunks, or until the connection ends: then nobody can tell a cut that is a clean end of it. */
async function give(response: ServerResponse, bytes: number): Promise<void> {
  const framing = Math.floor(random() * 3);
  if (framing === 0) response.setHeader('Content-Length', bytes);
  if (framing === 2) {
    response.removeHeader('Transfer-Encoding');
    response.shouldKeepAlive = false;
    response.setHeader('X-Ends', 'with its connection');
  }
  await pipeline(pieces(bytes), response);
}

function* pieces(bytes: number): Generator<Buffer> {
  for (let left = bytes; left > 0; left -= PIECE.length) yield PIECE.subarray(0, Math.min(left, PIECE.length));
}
