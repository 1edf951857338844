/** An upstream that accepts only well-formed requests, and records syntax errors. */
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { createServer } from 'node:net';
import { atEnd } from '../at-end.ts';
import type { StrictRequest } from '../clients/strict-http.ts';
import { readRequest } from '../clients/strict-http.ts';

export interface StrictUpstream {
  readonly url: string;
  /** Complete requests so far. */
  readonly requests: readonly StrictRequest[];
  /** Errors of malformed requests. */
  readonly faults: readonly string[];
  /** Open connections. */
  readonly connections: () => number;
  /** Clears the recorded requests. */
  forget(): void;
}

/** Answers a request; false lets the upstream echo it. */
export type AnswerStrictly = (socket: Socket, request: StrictRequest) => boolean;

/** Starts the upstream. Closed when the test ends. */
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
  atEnd(async () => {
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

/** Returns the body of the default response to a request. */
export function echo({ method, target, body }: Pick<StrictRequest, 'method' | 'target' | 'body'>): string {
  return `${method} ${target} ${body}`;
}

function echoOf(request: StrictRequest): string {
  const body = echo(request);
  const head = `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n`;
  return request.method === 'HEAD' ? head : head + body;
}
