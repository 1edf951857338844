/** An upstream with a handler from the test, which records requests. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { atEnd } from '../at-end.ts';
import { freePort, refusingPort } from '../free-port.ts';

export interface Hit {
  readonly method: string;
  readonly target: string;
  /** Names and values in turn, as received. */
  readonly headers: readonly string[];
  readonly body: Buffer;
  readonly sha256: string;
  /** When its body was complete, on the clock of `performance.now`. */
  readonly at: number;
}

export interface HttpUpstream {
  readonly url: string;
  /** Complete requests so far, in the order in which their bodies ended. */
  readonly hits: readonly Hit[];
  /** Connections accepted so far. */
  readonly connections: () => number;
  /** Open connections. */
  readonly openConnections: () => number;
}

/** Answers the n-th request (from 1), once its body is complete. */
export type Answerer = (n: number, response: ServerResponse, hit: Hit, request: IncomingMessage) => void;

/** Starts an upstream. It is closed with its connections when the test ends. */
export async function startHttpUpstream(answer: Answerer): Promise<HttpUpstream> {
  const hits: Hit[] = [];
  const { url, connections, openConnections } = await listen((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('error', () => undefined);
    request.on('end', () => {
      const { method = '', url: target = '', rawHeaders } = request;
      const body = Buffer.concat(chunks);
      const hit = { method, target, headers: rawHeaders, body, sha256: sha256(body), at: performance.now() };
      hits.push(hit);
      answer(hits.length, response, hit, request);
    });
  });
  return { url, hits, connections, openConnections };
}

/** Starts an upstream whose handler is called when a head has arrived. */
export async function listen(
  listener: (...args: Parameters<RequestListener>) => void | Promise<void>,
): Promise<{ url: string; server: Server; connections: () => number; openConnections: () => number }> {
  const server = createServer({ keepAliveTimeout: 0 }, (request, response) => void listener(request, response));
  let connections = 0;
  let openConnections = 0;
  server.on('connection', (socket) => {
    connections += 1;
    openConnections += 1;
    socket.once('close', () => {
      openConnections -= 1;
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(async () => {
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    server,
    connections: () => connections,
    openConnections: () => openConnections,
  };
}

export function sha256(bytes: Buffer | string): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Returns a URL that refuses connections; each time another one. */
export async function refusingUrl(): Promise<string> {
  return `http://127.0.0.1:${await refusingPort()}`;
}

/** Returns the URL of a free port, for a program that will listen there. */
export async function freeUrl(): Promise<string> {
  return `http://127.0.0.1:${await freePort()}`;
}
