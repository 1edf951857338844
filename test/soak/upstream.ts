// The upstreams of the soak, in a process of their own: a practice upstream with a hidden limit, and a feed
// of large bodies in both directions and of server-sent events. Sends its URLs to the parent, which sends changes.

import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { createServer, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import { createSecureServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PracticeSpec } from '../../src/simulator/practice/practice-spec.ts';
import { startPracticeServer } from '../../src/simulator/practice/practice-server.ts';
import { seededRandom } from '../../src/simulator/seeded-random.ts';

export interface UpstreamChange {
  readonly practice?: Partial<PracticeSpec>;
  /** The share of requests to the feed that fail. */
  readonly failing?: number;
}

export interface UpstreamUrls {
  readonly pay: string;
  readonly feed: string;
  /** The feed over TLS, by HTTP/2 and HTTP/1.1. */
  readonly secure: string;
}

type Request = IncomingMessage | Http2ServerRequest;
type Response = ServerResponse | Http2ServerResponse;

const PIECE = Buffer.alloc(16 * 1024, 'tidegate ');
const EVENT_EVERY = 100;

const [seedText = '1', certificate = ''] = process.argv.slice(2);
const seed = Number(seedText);
const random = seededRandom(seed);
let failing = 0;

const practice = await startPracticeServer({
  limit: { kind: 'token-bucket', rate: 150, burst: 30 },
  latency: { kind: 'lognormal', mean: 30, sigma: 0.5 },
  hints: 'retry-after',
  seed,
});
const feed = createServer({ keepAliveTimeout: 0, requestTimeout: 0 }, answer);
feed.listen({ host: '127.0.0.1', port: 0, backlog: 4096 });
await once(feed, 'listening');
const secure = createSecureServer(
  { key: readFileSync(`${certificate}.key`), cert: readFileSync(`${certificate}.crt`), allowHTTP1: true },
  answer,
);
// Echoes the data of WebSockets.
secure.on('upgrade', (_request: IncomingMessage, socket: Duplex) => {
  socket.on('error', () => undefined);
  socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  socket.pipe(socket);
});
secure.on('session', (session) => session.on('error', () => undefined));
secure.on('sessionError', () => undefined);
secure.listen({ host: '127.0.0.1', port: 0, backlog: 4096 });
await once(secure, 'listening');

process.on('message', (change: UpstreamChange) => {
  if (change.practice !== undefined) practice.configure(change.practice);
  failing = change.failing ?? failing;
});
process.send?.({
  pay: practice.url,
  feed: `http://127.0.0.1:${(feed.address() as AddressInfo).port}`,
  secure: `https://127.0.0.1:${(secure.address() as AddressInfo).port}`,
} satisfies UpstreamUrls);

function answer(request: Request, response: Response): void {
  response.on('error', () => undefined);
  serve(request, response).catch(() => {
    if (response instanceof ServerResponse) response.destroy();
    else response.stream?.destroy(new Error('broken off'));
  });
}

async function serve(request: Request, response: Response): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://feed');
  if (random() < failing) {
    request.resume();
    response.statusCode = random() < 0.5 ? 500 : 503;
    response.end('failed');
    return;
  }
  if (pathname.endsWith('/upload')) return hashUpload(request, response);
  request.resume();
  if (pathname.endsWith('/events')) return sendEvents(response, Number(searchParams.get('count')));
  return sendBody(response, Number(searchParams.get('bytes')));
}

async function hashUpload(request: Request, response: Response): Promise<void> {
  const hash = createHash('sha256');
  for await (const chunk of request) hash.update(chunk as Buffer);
  response.end(hash.digest('hex'));
}

async function sendEvents(response: Response, count: number): Promise<void> {
  response.setHeader('Content-Type', 'text/event-stream');
  await pipeline(events(count), response);
}

async function* events(count: number): AsyncGenerator<string> {
  for (let i = 0; i < count; i += 1) {
    yield `data: ${i}\n\n`;
    await sleep(EVENT_EVERY);
  }
}

/** Sends a body with a length, in chunks, or until the connection ends: then a clean cut cannot be detected. */
async function sendBody(response: Response, bytes: number): Promise<void> {
  const framing = Math.floor(random() * (response instanceof ServerResponse ? 3 : 2));
  if (framing === 0) response.setHeader('Content-Length', bytes);
  if (framing === 2 && response instanceof ServerResponse) {
    response.removeHeader('Transfer-Encoding');
    response.shouldKeepAlive = false;
    response.setHeader('X-Ends', 'with its connection');
  }
  await pipeline(pieces(bytes), response);
}

function* pieces(bytes: number): Generator<Buffer> {
  for (let left = bytes; left > 0; left -= PIECE.length) yield PIECE.subarray(0, Math.min(left, PIECE.length));
}
