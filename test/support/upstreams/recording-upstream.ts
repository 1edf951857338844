/** An upstream that records requests to the byte, with a handler from the test. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { atEnd } from '../at-end.ts';

export interface RecordedRequest {
  readonly method: string;
  /** The request target as received: path and query, undecoded. */
  readonly target: string;
  /** Names and values in turn, as received. */
  readonly rawHeaders: readonly string[];
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

export interface RecordingUpstream {
  /** Without a trailing slash. */
  readonly url: string;
  /** Complete requests, in the order of their last byte. */
  readonly received: readonly RecordedRequest[];
  /** Connections accepted so far. */
  readonly connections: () => number;
}

/** Answers a complete request; `nth` counts from 1. */
export type AnswerRequest = (received: RecordedRequest, response: ServerResponse, nth: number) => void;

/** Listens on a free port until the test ends. Answers 200 by default. */
export async function startRecordingUpstream(
  answer: AnswerRequest = (_, response) => response.end('{}'),
): Promise<RecordingUpstream> {
  const received: RecordedRequest[] = [];
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
  atEnd(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => {
      server.close(resolve);
    });
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, received, connections: () => connections };
}
