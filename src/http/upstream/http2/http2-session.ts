import type { ClientHttp2Session, ClientSessionOptions } from 'node:http2';
import { connect as connectHttp2 } from 'node:http2';
import type { Socket } from 'node:net';
import type { Millis } from '../../../core/scalars.ts';
import { MAX_SESSION_MEMORY } from '../../undici/http2-session-memory.ts';

/**
 * Flow-control windows of a response and of a connection: at a round trip of 50 ms they allow 5 MB/s and 20 MB/s. The default
 * of 64 KiB for both would allow 1.3 MB/s for all responses together.
 */
const STREAM_WINDOW = 256 * 1024;
const CONNECTION_WINDOW = 1024 * 1024;

/** Bounds the memory of a compressed head, with 32 bytes for each field (RFC 9113 §6.5.2). Beyond it, Node resets the stream. */
const MAX_HEADER_LIST = 1024 * 1024;

/** The types of Node 24.19 declare `strictSingleValueFields` for servers only. */
type SessionOptions = ClientSessionOptions & { readonly strictSingleValueFields: boolean };

/** Begins HTTP/2 on a connection whose upstream has chosen it. */
export function openHttp2Session(origin: string, socket: Socket): ClientHttp2Session {
  const options: SessionOptions = {
    createConnection: () => socket,
    maxSessionMemory: MAX_SESSION_MEMORY,
    maxHeaderListPairs: MAX_HEADER_LIST / 32,
    settings: { enablePush: false, initialWindowSize: STREAM_WINDOW, maxHeaderListSize: MAX_HEADER_LIST },
    // Repeated headers of a client are forwarded unchanged, as over HTTP/1.1.
    strictSingleValueFields: false,
    // nghttp2 would drop a field with white space around its value, such as a Retry-After.
    strictFieldWhitespaceValidation: false,
  };
  const session = connectHttp2(origin, options);
  session.once('connect', () => session.setLocalWindowSize(CONNECTION_WINDOW));
  return session;
}

/** Node 24.21 closes a socket once all is written, and never notices that a write has failed: see http2-keepalive.ts. */
const CLOSE_TIMEOUT: Millis = 2000;

/** Destroys the socket of a closed session, unless Node does it in time. */
export function destroySoon(socket: Socket): void {
  if (!socket.destroyed) setTimeout(() => socket.destroy(), CLOSE_TIMEOUT).unref();
}
