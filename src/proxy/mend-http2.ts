import type { ClientHttp2Session } from 'node:http2';
import type { Client } from 'undici';
import { partOf } from './part-of.ts';

/**
 * What undici 8.12.4 gives up over HTTP/2 it closes, and then destroys (client-h2.js:1169, abort; :225, closeStream). Node
 * 24.21 resets a stream that is closed only when the rest of its body has gone, or after it has told of it
 * (lib/internal/http2/core.js:2057, closeStream): by then it is destroyed, and is never reset. The upstream waits for the
 * rest; and when it next allows for more, nghttp2 asks for bytes of a stream that Node has forgotten, is given none, and asks
 * again: for ever, and in one turn of the event loop (src/node_http2.cc, Http2Stream::Provider::Stream::OnRead). One that is
 * destroyed first is reset at once, and by an AbortSignal with the right code: CANCEL (RFC 9113 §7). There is no public hook.
 *
 * Where the session is not found, another release of undici has changed its inside.
 */
export function mendResets(client: Client): void {
  client.on('connect', () => {
    const session = partOf(client, 'http2Session');
    if (isSession(session)) mend(session);
  });
}

function mend(session: ClientHttp2Session): void {
  const request = session.request.bind(session);
  session.request = (headers, options) => {
    const giveUp = new AbortController();
    const stream = request(headers, { ...options, signal: giveUp.signal });
    stream.close = () => giveUp.abort();
    return stream;
  };
}

export function isSession(value: unknown): value is ClientHttp2Session {
  return typeof value === 'object' && value !== null && 'request' in value && typeof value.request === 'function';
}
