/** The moment at which a stream of an HTTP/2 client closes, and whether its response was sent whole by then. */
import { subscribe } from 'node:diagnostics_channel';
import type { ServerHttp2Stream } from 'node:http2';

/** @param isEndSent the END_STREAM of the response has been sent; undefined if that is not known any more */
type StreamCloseListener = (isEndSent: boolean | undefined) => void;

const listeners = new WeakMap<ServerHttp2Stream, StreamCloseListener>();
let isSubscribed = false;

/**
 * Calls the listener at the moment the stream closes. No event of Node 24's stream shows whether a stream that was reset had sent
 * everything: its code is the client's choice, Node ends the writable side of a reset stream itself, and it reports writes that
 * were dropped as written. If the client resets with NO_ERROR, `close` comes only after everything has been read and written,
 * so possibly never.
 */
export function onStreamClose(stream: ServerHttp2Stream, listener: StreamCloseListener): void {
  if (!isSubscribed) subscribe('http2.server.stream.close', report);
  isSubscribed = true;
  listeners.set(stream, listener);
}

/**
 * The state of the stream is still that of nghttp2, unless the stream is destroyed together with its connection. Node also closes
 * a stream itself once it has given everything to nghttp2, which may have to wait for the connection.
 */
function report(message: unknown): void {
  if (!isMessage(message)) return;
  const { stream } = message;
  const { localClose } = stream.state;
  const isKnown = localClose === 1 || (localClose === 0 && !stream.writableFinished);
  listeners.get(stream)?.(isKnown ? localClose === 1 : undefined);
}

function isMessage(message: unknown): message is { readonly stream: ServerHttp2Stream } {
  return typeof message === 'object' && message !== null && 'stream' in message;
}
