import type { Server } from 'node:http';
import { Server as TlsServer } from 'node:tls';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import type { Millis } from '../../core/scalars.ts';

/** What a client sends first over HTTP/2 (RFC 9113 §3.4). No request of HTTP/1.1 begins so. */
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

/**
 * Takes the connections of a server that use HTTP/2, and leaves the others to its own parser: without TLS those that begin with the
 * preface, over TLS those that negotiated `h2`. Listeners that are added later get the connections of both.
 * @param timeout for the first bytes of a connection
 */
export function separateHttp2(server: Server, accept: (connection: Duplex) => void, timeout: Millis): void {
  const isTls = server instanceof TlsServer;
  const event = isTls ? 'secureConnection' : 'connection';
  const others = server.listeners(event);
  server.removeAllListeners(event);
  const leave = (socket: Socket): void => {
    for (const listener of others) Reflect.apply(listener, server, [socket]);
  };
  if (isTls) {
    server.on(event, (socket: TLSSocket) => (socket.alpnProtocol === 'h2' ? accept(socket) : leave(socket)));
  } else {
    server.on(event, (socket: Socket) =>
      readFirstBytes(socket, timeout, (isHttp2) => (isHttp2 ? accept : leave)(socket)),
    );
  }
}

/** For the option `ALPNCallback`. Clients that offer HTTP/1.1 as well get it. */
export function chooseProtocol({ protocols }: { readonly protocols: readonly string[] }): string | undefined {
  return protocols.includes('http/1.1') ? 'http/1.1' : protocols.find((each) => each === 'h2');
}

/** @param onKnown called once, when the first bytes show the protocol; they can be read again */
function readFirstBytes(socket: Socket, timeout: Millis, onKnown: (isHttp2: boolean) => void): void {
  let received = Buffer.alloc(0);
  const abort = (): void => void socket.destroy();
  const timer = setTimeout(abort, timeout);
  const onClose = (): void => clearTimeout(timer);
  const onReadable = (): void => {
    const bytes: unknown = socket.read();
    if (!Buffer.isBuffer(bytes)) return;
    received = Buffer.concat([received, bytes]);
    const isPreface = PREFACE.subarray(0, received.length).equals(received.subarray(0, PREFACE.length));
    if (isPreface && received.length < PREFACE.length) return;
    socket.off('readable', onReadable).off('end', abort).off('error', abort).off('close', onClose);
    clearTimeout(timer);
    socket.unshift(received);
    onKnown(isPreface);
  };
  socket.on('readable', onReadable).on('end', abort).on('error', abort).on('close', onClose);
}
