/** Many requests over few connections, each sent before the last is answered: a client costs little beside what it asks for. */
import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { onTestFinished } from 'vitest';

export interface Flood {
  readonly connections: number;
  /** In all. */
  readonly requests: number;
  /** Sent and not answered, on each connection. */
  readonly ahead: number;
  /** The n-th request, from 0, to the byte. */
  readonly request: (n: number) => string | Buffer;
}

export interface Flooded {
  /** Answers by their status. */
  readonly answered: Readonly<Record<number, number>>;
  /** Connections that the other side closed before all was answered. */
  readonly cut: number;
}

/** Sends them all, and resolves when every one has been answered or its connection is gone. */
export function flood(url: string, all: Flood): Promise<Flooded> {
  return beginFlood(url, all)[0];
}

/** As `flood`, with a way to hang up. */
export function beginFlood(
  url: string,
  { connections, requests, ahead, request }: Flood,
): [flooded: Promise<Flooded>, hangUp: () => void] {
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
  onTestFinished(hangUp);
  const closed = Promise.all(Array.from({ length: connections }, open));
  return [closed.then(() => ({ answered, cut })), hangUp];
}
