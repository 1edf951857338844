/** An upstream that keeps what arrived, to the byte, and answers as a test tells it. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export interface Received {
  readonly method: string;
  /** The request target as it came: path and query, undecoded. */
  readonly target: string;
  /** Names and values in turn, as they came. */
  readonly rawHeaders: readonly string[];
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

export interface Origin {
  /** Without a slash at the end. */
  readonly url: string;
  /** Requests whose body came whole, in the order of their last byte. */
  readonly received: readonly Received[];
  /** Connections made to it so far. */
  readonly connections: () => number;
}

/** Answers a request that has come whole; `nth` counts from 1. */
export type AnswerRequest = (received: Received, response: ServerResponse, nth: number) => void;

/** Listens on a free port until the test ends. Without an `answer` of the test's own it says 200. */
export async function startOrigin(answer: AnswerRequest = (_, response) => response.end('{}')): Promise<Origin> {
  const received: Received[] = [];
  let connections = 0;
  const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method = '', url = '', rawHeaders, headers } = request;
      const whole = { method, target: url, rawHeaders, headers, body: Buffer.concat(chunks) };
      received.push(whole);
      answer(whole, response, received.length);
    });
  });
  server.on('connection', () => {
    connections += 1;
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => {
      server.close(resolve);
    });
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, received, connections: () => connections };
}
