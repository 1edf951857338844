/** HTTP/2 upstreams with handlers from the test. Closed when the test ends. */
import { once } from 'node:events';
import type { IncomingHttpHeaders, SecureServerOptions, ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import { createSecureServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { createServer as createTls } from 'node:tls';
import { atEnd } from '../at-end.ts';
import type { Frame } from '../clients/http2-client.ts';
import { FLAG, FRAME, frame, OK, PREFACE, readFrames } from '../clients/http2-client.ts';

/** PEM text. */
export interface TlsIdentity {
  readonly key: string;
  readonly cert: string;
}

export interface Http2Upstream {
  readonly url: string;
  readonly heads: readonly IncomingHttpHeaders[];
  /** The raw heads: names and values in turn. */
  readonly rawHeads: readonly (readonly string[])[];
  /** Connections so far. */
  readonly sessions: () => number;
  /** Open connections. */
  readonly open: () => number;
  /** Sets the flow control window of each stream. */
  readonly widen: (window: number) => void;
}

export async function startHttp2(
  identity: TlsIdentity,
  answer: (stream: ServerHttp2Stream, nth: number, head: IncomingHttpHeaders) => void,
  options: SecureServerOptions = {},
): Promise<Http2Upstream> {
  const heads: IncomingHttpHeaders[] = [];
  const rawHeads: (readonly string[])[] = [];
  let sessions = 0;
  const live = new Set<ServerHttp2Session>();
  const server = createSecureServer({ ...identity, allowHTTP1: false, ...options });
  server.on('session', (session) => {
    sessions += 1;
    live.add(session);
    session.on('error', () => undefined);
    session.on('close', () => live.delete(session));
    atEnd(() => session.destroy());
  });
  server.on('stream', (stream: ServerHttp2Stream, head: IncomingHttpHeaders, _flags: number, raw: string[]) => {
    stream.on('error', () => undefined);
    rawHeads.push(raw);
    answer(stream, heads.push(head), head);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(() => {
    server.close();
  });
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    heads,
    rawHeads,
    sessions: () => sessions,
    open: () => live.size,
    widen: (initialWindowSize) => {
      for (const session of live) session.settings({ initialWindowSize });
    },
  };
}

/**
 * Starts an upstream that writes raw frames. The handler is called for each head; it does not wait for a body.
 * @param onOther called for each frame other than heads and settings
 * @param onConnection called for each connection, with its ordinal, before anything is written; it may destroy the socket
 */
export async function startFrames(
  identity: TlsIdentity,
  onHead: (socket: TLSSocket, stream: number, connection: number, hasBody: boolean) => void,
  onOther?: (socket: TLSSocket, other: Frame, connection: number) => void,
  onConnection?: (socket: TLSSocket, connection: number) => void,
): Promise<{ readonly url: string; readonly heads: () => number; readonly frames: readonly Frame[] }> {
  let connections = 0;
  let heads = 0;
  const sockets: TLSSocket[] = [];
  const frames: Frame[] = [];
  const server = createTls({ ...identity, ALPNProtocols: ['h2'] }, (socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
    connections += 1;
    const connection = connections;
    onConnection?.(socket, connection);
    if (socket.destroyed) return;
    socket.write(frame(FRAME.settings, 0, 0));
    readFrames(socket, PREFACE.length, (read) => {
      frames.push(read);
      const { type, flags, stream } = read;
      if (type === FRAME.settings && (flags & FLAG.ack) === 0) socket.write(frame(FRAME.settings, FLAG.ack, 0));
      if (type !== FRAME.headers && type !== FRAME.settings) onOther?.(socket, read, connection);
      if (type !== FRAME.headers) return;
      heads += 1;
      onHead(socket, stream, connection, (flags & FLAG.endStream) === 0);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  atEnd(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, heads: () => heads, frames };
}

export function answerOk(socket: TLSSocket, stream: number): void {
  socket.write(frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, stream, OK));
}
