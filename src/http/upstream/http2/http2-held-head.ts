import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2';
import { constants } from 'node:http2';

/** Sessions that write the frame of such a reset. */
const resetting = new WeakSet<ClientHttp2Session>();

/**
 * Resets a request whose head nghttp2 still holds because the upstream takes no more streams: it has lowered
 * SETTINGS_MAX_CONCURRENT_STREAMS. nghttp2 then drops the head (1.70, nghttp2_session_add_rst_stream). Does nothing if the body has
 * not ended: `close` would end it, so that its beginning could look complete.
 *
 * Node 24.21 writes all that is due before it resets a stream, or does both later if it is reading or writing
 * (Http2Stream::SubmitRstStream). So nothing was written if a frame that is due leaves the queue and the head does not.
 * @param stream without a response; to be destroyed by the caller at once
 * @returns true if no byte of the request was written, and none will be
 */
export function resetHeldHead(stream: ClientHttp2Stream, session: ClientHttp2Session): boolean {
  if (!stream.writableEnded || !isHeld(stream)) return false;
  // A window update of one byte is due. Over TLS, Node is writing it until the next turn but one.
  resetting.add(session);
  setImmediate(() => setImmediate(() => resetting.delete(session)));
  session.setLocalWindowSize((session.state.effectiveLocalWindowSize ?? 0) + 1);
  const before = session.state.outboundQueueSize ?? 0;
  stream.close(constants.NGHTTP2_CANCEL);
  return isHeld(stream) && (session.state.outboundQueueSize ?? before) < before;
}

/** Whether to wait a millisecond with `resetHeldHead`, because another head of the session was reset just now. */
export function isResetBusy(stream: ClientHttp2Stream, session: ClientHttp2Session): boolean {
  return resetting.has(session) && stream.writableEnded && isHeld(stream);
}

/** For nghttp2 a stream is idle until it writes the head. A stream that Node has destroyed has no state. */
function isHeld(stream: ClientHttp2Stream): boolean {
  return stream.state.state === constants.NGHTTP2_STREAM_STATE_IDLE;
}
