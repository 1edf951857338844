import type { ErrorReason } from '../policy/types.ts';
import type { Flaw } from './flaw.ts';
import { flawOf } from './flaw.ts';

/** Why no head came of an attempt. */
export interface Failure {
  readonly reason: ErrorReason;
  /** Bytes of the request may have reached the upstream, and it may have acted on them. */
  readonly sent: boolean;
  /** The code of the error, `CERT_HAS_EXPIRED` say; undefined where it has none. */
  readonly cause?: string | undefined;
  /** What was wrong with the answer, where it was that. */
  readonly flaw?: Flaw | undefined;
}

/** RFC 9113 §7: not processed in any way, so it may be sent again whatever it is. */
export const REFUSED_STREAM = 7;

/**
 * @param began the request was given a connection. Without one nothing was sent, whatever it was that failed: lookup,
 * connect or TLS handshake
 */
export function readFailure(error: Error, began: boolean): Failure {
  const cause = codeOf(error);
  if (!began) return { reason: isShortage(cause) ? 'too_many_files' : 'connect', sent: false, cause };
  if (isRefusedStream(error)) return { reason: 'connect', sent: false, cause: 'REFUSED_STREAM' };
  if (isGoAway(error)) return { reason: 'connect', sent: false, cause: 'GOAWAY' };
  const isLate = cause === 'UND_ERR_HEADERS_TIMEOUT' || cause === 'UND_ERR_BODY_TIMEOUT';
  return { reason: isLate ? 'timeout' : 'reset', sent: true, cause, flaw: flawOf(error) };
}

/** As many files are open as this process, or this machine, may have. */
function isShortage(code: string | undefined): boolean {
  return code === 'EMFILE' || code === 'ENFILE';
}

/** The HTTP client refuses to write such a request: a fault of the request, and no word on the upstream. */
export function isUnsendable(error: Error): boolean {
  const code = codeOf(error);
  return code === 'UND_ERR_INVALID_ARG' || code === 'UND_ERR_NOT_SUPPORTED';
}

/** The other side has closed the connection, or is not there any more. */
export function isClose(error: Error): boolean {
  const code = codeOf(error);
  return code === 'UND_ERR_SOCKET' || code === 'ECONNRESET' || code === 'ECONNABORTED' || code === 'EPIPE';
}

/**
 * Of requests, this error means that the upstream has not processed them: undici 8.12.4 tells it to those alone whose
 * stream is beyond the last one that the frame names (client-h2.js, onHttp2SessionGoAway). Others break with the connection.
 */
export function isGoAway(error: Error): boolean {
  return error.message.startsWith('HTTP/2: "GOAWAY" frame received');
}

/** undici 8.12.4 leaves the number out where a streamed body was being written (client-h2.js, writeStream). */
function isRefusedStream(error: Error): boolean {
  if ('http2ErrorCode' in error && error.http2ErrorCode === REFUSED_STREAM) return true;
  return codeOf(error) === 'ERR_HTTP2_STREAM_ERROR' && error.message.endsWith('NGHTTP2_REFUSED_STREAM');
}

function codeOf(error: Error): string | undefined {
  return 'code' in error && typeof error.code === 'string' && error.code !== '' ? error.code : undefined;
}
