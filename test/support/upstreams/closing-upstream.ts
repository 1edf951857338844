/** An upstream that closes connections at inconvenient times, and counts executed requests. */
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { createServer } from 'node:net';
import { atEnd } from '../at-end.ts';

/** When it closes a connection. */
export interface Habits {
  /** Closes this many milliseconds after its last response, without announcement. */
  readonly idle?: number;
  /** Closes with this response of a connection, counted from 1, announced in the response or not. */
  readonly after?: { readonly answers: number; readonly announced: boolean };
  /** Whether to close as the n-th request of a connection arrives (from 1), before it is executed. */
  readonly atRequest?: (n: number) => boolean;
}

export interface ClosingUpstream {
  readonly url: string;
  /** How often each request was executed, by its X-Id. */
  readonly ledger: ReadonlyMap<string, number>;
  readonly connections: () => number;
  /** Idle connections closed. */
  readonly closedIdle: () => number;
  /** Requests cut off on arrival. */
  readonly cutOff: () => number;
}

/** Answers 200 with the id of the request. Closed when the test ends. */
export async function startClosingUpstream(habits: Habits): Promise<ClosingUpstream> {
  const ledger = new Map<string, number>();
  const sockets = new Set<Socket>();
  let connections = 0;
  let closedIdle = 0;
  let cutOff = 0;
  const server = createServer({ noDelay: true }, (socket) => {
    let text = '';
    let requests = 0;
    let idle: NodeJS.Timeout | undefined;
    connections += 1;
    sockets.add(socket);
    socket.setEncoding('latin1');
    socket.on('error', () => undefined);
    socket.on('close', () => {
      clearTimeout(idle);
      sockets.delete(socket);
    });
    socket.on('data', (piece: string) => {
      clearTimeout(idle);
      text += piece;
      if (habits.atRequest?.(requests + 1) === true) {
        cutOff += 1;
        socket.resetAndDestroy();
        return;
      }
      for (let request = readRequest(text); request !== undefined; request = readRequest(text)) {
        text = text.slice(request.length);
        requests += 1;
        ledger.set(request.id, (ledger.get(request.id) ?? 0) + 1);
        const last = requests === habits.after?.answers;
        const close = last && habits.after?.announced ? 'Connection: close\r\n' : '';
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${request.id.length}\r\n${close}\r\n${request.id}`);
        if (last) socket.end();
      }
      if (habits.idle === undefined || text !== '') return;
      idle = setTimeout(() => {
        closedIdle += 1;
        socket.end();
      }, habits.idle);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    ledger,
    connections: () => connections,
    closedIdle: () => closedIdle,
    cutOff: () => cutOff,
  };
}

/** Returns the first request in the text once it is complete. */
function readRequest(text: string): { readonly id: string; readonly length: number } | undefined {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const head = text.slice(0, end);
  const body = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
  const length = end + 4 + body;
  return text.length < length ? undefined : { id: /^x-id: *(\S+)/im.exec(head)?.[1] ?? '', length };
}
