import type { ErrorReason } from '../../core/exchange/attempt-outcome.ts';
import type { Flaw } from './response-defect.ts';
import { flawOf } from './response-defect.ts';

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

/** The cause where the one endpoint that a write may go to is there no more: nothing was sent. */
export const ENDPOINT_REMOVED = 'ENDPOINT_REMOVED';

/**
 * The upstream has not looked at a request: it refused its stream (RFC 9113 §7), or went away before (§6.8). So it may be sent
 * again, whatever it is.
 */
export class UnreadError extends Error {
  readonly code: 'REFUSED_STREAM' | 'GOAWAY';

  constructor(code: UnreadError['code']) {
    super('the upstream turned the request away unread');
    this.code = code;
  }
}

/** A connection came after the last moment at which the request might be sent. */
export class LateError extends Error {
  readonly code = 'TOO_LATE';

  constructor() {
    super('no connection came in time');
  }
}

/**
 * @param began the request was given a connection. Without one nothing was sent, whatever it was that failed: lookup,
 * connect or TLS handshake
 */
export function readFailure(error: Error, began: boolean): Failure {
  const cause = codeOf(error);
  if (error instanceof LateError) return { reason: 'timeout', sent: false, cause };
  if (!began) return { reason: isShortage(cause) ? 'too_many_files' : 'connect', sent: false, cause };
  if (error instanceof UnreadError) return { reason: 'connect', sent: false, cause };
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

function codeOf(error: Error): string | undefined {
  return 'code' in error && typeof error.code === 'string' && error.code !== '' ? error.code : undefined;
}
