/** Raw sockets for both ends of a connection. */
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import { atEnd } from '../at-end.ts';
import { eventually } from '../proxy/tidegate.ts';

export interface RawClient {
  readonly socket: Socket;
  write(bytes: string | Buffer): void;
  /** The bytes received so far, one character a byte. */
  readonly received: () => string;
  /** Resolves to the received text once it contains or matches `what`. */
  until(what: string | RegExp, within?: number): Promise<string>;
  /** Resolves to the received text when the peer has closed. */
  ended(within?: number): Promise<string>;
}

/** Opens a connection. It is destroyed when the test ends. */
export async function openRaw(url: string): Promise<RawClient> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  atEnd(() => {
    socket.destroy();
  });
  let text = '';
  let over = false;
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
  });
  socket.on('error', () => undefined);
  socket.on('close', () => {
    over = true;
  });
  await once(socket, 'connect');
  const matches = (what: string | RegExp) => (typeof what === 'string' ? text.includes(what) : what.test(text));
  return {
    socket,
    write: (bytes) => {
      socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
    },
    received: () => text,
    until: (what, within) =>
      eventually(
        () => text,
        () => matches(what),
        within,
      ),
    ended: (within = 5000) =>
      new Promise((resolve, reject) => {
        if (over) return resolve(text);
        const timer = setTimeout(() => {
          reject(new Error(`not closed within ${within} ms; received: ${JSON.stringify(text.slice(0, 1000))}`));
        }, within);
        socket.once('close', () => {
          clearTimeout(timer);
          resolve(text);
        });
      }),
  };
}

/** Opens a half-open client, which can write after the peer has closed. It is destroyed when the test ends. */
export async function openHalf(url: string): Promise<{ socket: Socket; received: () => string }> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true, allowHalfOpen: true });
  atEnd(() => {
    socket.destroy();
  });
  let text = '';
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1');
  });
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return { socket, received: () => text };
}

/** Sends bytes on a new connection; resolves to all bytes received until the peer closes. */
export async function sendRaw(url: string, bytes: string | Buffer, within?: number): Promise<string> {
  const client = await openRaw(url);
  client.write(bytes);
  return client.ended(within);
}

export interface RawUpstream {
  readonly url: string;
  /** Connections so far, in order. */
  readonly connections: readonly RawConnection[];
}

export interface RawConnection {
  readonly socket: Socket;
  readonly received: () => string;
}

/** Calls back for each request head on each connection; bodies are in `received`. Closed when the test ends. */
export async function startRawUpstream(
  onHead: (socket: Socket, head: string, connection: number) => void,
): Promise<RawUpstream> {
  const connections: RawConnection[] = [];
  const server = createServer({ noDelay: true }, (socket) => {
    let text = '';
    let seen = 0;
    const number = connections.push({ socket, received: () => text });
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
      for (let end = text.indexOf('\r\n\r\n', seen); end >= 0; end = text.indexOf('\r\n\r\n', seen)) {
        const head = text.slice(seen, end);
        seen = end + 4;
        if (/^[A-Z-]+ \S+ HTTP\/1\.1/.test(head)) onHead(socket, head, number);
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(async () => {
    const closed = once(server, 'close');
    server.close();
    for (const { socket } of connections) socket.destroy();
    await closed;
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, connections };
}
