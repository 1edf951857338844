/** Pipelines many requests over few connections, so that the client uses little CPU time compared with the server. */
import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { atEnd } from '../at-end.ts';

export interface FloodOptions {
  readonly connections: number;
  /** Total number of requests. */
  readonly requests: number;
  /** Outstanding requests on each connection. */
  readonly ahead: number;
  /** Returns the bytes of the n-th request, from 0. */
  readonly request: (n: number) => string | Buffer;
}

export interface FloodResult {
  /** Number of responses by status. */
  readonly answered: Readonly<Record<number, number>>;
  /** Connections that the server closed with requests outstanding. */
  readonly cut: number;
}

/** Sends all requests. Resolves when each has its response or its connection is closed. */
export function flood(url: string, all: FloodOptions): Promise<FloodResult> {
  return beginFlood(url, all)[0];
}

/** Like `flood`, but also returns a function that closes the connections. */
export function beginFlood(
  url: string,
  { connections, requests, ahead, request }: FloodOptions,
): [flooded: Promise<FloodResult>, hangUp: () => void] {
  const { hostname, port } = new URL(url);
  const answered: Record<number, number> = {};
  let cut = 0;
  let sent = 0;
  const sockets: Socket[] = [];
  const open = (): Promise<void> =>
    new Promise((resolve) => {
      const socket = connect({ host: hostname, port: Number(port) });
      sockets.push(socket);
      let waiting = 0;
      let rest = '';
      const go = (): void => {
        const pieces: Buffer[] = [];
        for (; waiting < ahead && sent < requests; waiting += 1) {
          const next = request(sent);
          pieces.push(typeof next === 'string' ? Buffer.from(next) : next);
          sent += 1;
        }
        if (pieces.length > 0) socket.write(Buffer.concat(pieces));
        else if (waiting === 0) socket.end();
      };
      socket.on('connect', go);
      socket.on('data', (chunk: Buffer) => {
        rest += chunk.toString('latin1');
        for (const [, status] of rest.matchAll(/HTTP\/1\.1 (\d\d\d) /g)) {
          answered[Number(status)] = (answered[Number(status)] ?? 0) + 1;
          waiting -= 1;
        }
        rest = rest.slice(Math.max(0, rest.lastIndexOf('HTTP/1.1 ')));
        if (/^HTTP\/1\.1 \d\d\d /.test(rest)) rest = rest.slice('HTTP/1.1 200 '.length);
        go();
      });
      socket.on('error', () => undefined);
      socket.on('close', () => {
        if (waiting > 0) cut += 1;
        resolve();
      });
    });
  const hangUp = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  atEnd(hangUp);
  const closed = Promise.all(Array.from({ length: connections }, open));
  return [closed.then(() => ({ answered, cut })), hangUp];
}
