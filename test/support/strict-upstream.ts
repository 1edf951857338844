/** An upstream that takes nothing but well-formed requests, and remembers what else it was sent. */
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { createServer } from 'node:net';
import { onTestFinished } from 'vitest';
import type { StrictRequest } from './strict-http.ts';
import { readRequest } from './strict-http.ts';

export interface StrictUpstream {
  readonly url: string;
  /** Whole requests so far. */
  readonly requests: readonly StrictRequest[];
  /** What was wrong with what else came. */
  readonly faults: readonly string[];
  /** Connections that are open. */
  readonly connections: () => number;
  /** Forgets the requests so far. */
  forget(): void;
}

/** Answers a request; false leaves it to the upstream itself, which echoes it. */
export type AnswerStrictly = (socket: Socket, request: StrictRequest) => boolean;

/** Closed when the test ends. */
export async function startStrictUpstream(answer: AnswerStrictly = () => false): Promise<StrictUpstream> {
  const requests: StrictRequest[] = [];
  const faults: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    let bytes = '';
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => {
      bytes += chunk.toString('latin1');
      try {
        for (let next = readRequest(bytes, 0); next !== undefined; next = readRequest(bytes, 0)) {
          bytes = bytes.slice(next.end);
          requests.push(next.message);
          if (!answer(socket, next.message)) socket.write(Buffer.from(echoOf(next.message), 'latin1'));
        }
      } catch (error) {
        faults.push(String(error));
        socket.destroy();
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    const closed = once(server, 'close');
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    faults,
    connections: () => sockets.size,
    forget: () => requests.splice(0),
  };
}

/** What it says to a request, as the body of its answer. */
export function echo({ method, target, body }: Pick<StrictRequest, 'method' | 'target' | 'body'>): string {
  return `${method} ${target} ${body}`;
}

function echoOf(request: StrictRequest): string {
  const body = echo(request);
  const head = `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n`;
  return request.method === 'HEAD' ? head : head + body;
}
