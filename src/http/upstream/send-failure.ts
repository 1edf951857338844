import type { ErrorReason } from '../../core/exchange/attempt-outcome.ts';
import type { ResponseDefect } from './response-defect.ts';
import { defectOfError } from './response-defect.ts';

/** Why an attempt got no response head, or the forwarded body was cut short. */
export interface SendFailure {
  readonly reason: ErrorReason;
  /** Bytes of the request may have reached the upstream, and it may have acted on them. */
  readonly sent: boolean;
  /** The code of the error, such as `CERT_HAS_EXPIRED`; undefined if it has none. */
  readonly cause?: string | undefined;
  /** What was wrong with the response, if that was the reason. */
  readonly defect?: ResponseDefect | undefined;
}

/** The HTTP client refuses to write this request. The request is at fault; the outcome says nothing about the upstream. */
export interface InvalidRequestFailure {
  readonly reason: 'invalid_request';
  readonly detail: string;
}

/** The cause when the only endpoint that a write may go to has been removed: nothing was sent. */
export const ENDPOINT_REMOVED = 'ENDPOINT_REMOVED';

/** The cause when the only account that a write may be sent with has been removed, or is not the chosen one: nothing was sent. */
export const ACCOUNT_REMOVED = 'ACCOUNT_REMOVED';

/**
 * The upstream did not process the request: it refused the stream (RFC 9113 §7), or closed the connection before it read the
 * request (§6.8). Any request may then be sent again.
 */
export class RequestNotProcessedError extends Error {
  readonly code: 'REFUSED_STREAM' | 'GOAWAY';

  constructor(code: RequestNotProcessedError['code']) {
    super('the upstream did not process the request');
    this.code = code;
  }
}

/** The cause when a connection became available only after the last moment at which the request might be sent. */
export const TOO_LATE = 'TOO_LATE';

/** The cause when a connection became available so late that the write's key has to be looked up first: see `KeyClaim.isCurrent`. */
export const KEY_OUTDATED = 'KEY_OUTDATED';

/** Nothing was sent: see the codes. */
export class SendTooLateError extends Error {
  readonly code: typeof TOO_LATE | typeof KEY_OUTDATED;

  constructor(code: SendTooLateError['code']) {
    super('no connection was available in time');
    this.code = code;
  }
}

/** The code of a connection reset while undici handles it: see connector.ts. */
export const MASKED_RESET = 'TIDEGATE_ECONNRESET';

/**
 * @param hadConnection the request was given a connection. Otherwise nothing was sent, whichever step failed: DNS lookup,
 * connect or TLS handshake
 */
export function failureOf(error: Error, hadConnection: boolean): SendFailure | InvalidRequestFailure {
  const code = codeOf(error);
  if (INVALID_REQUEST_CODES.has(code ?? '')) return { reason: 'invalid_request', detail: error.message };
  if (error instanceof SendTooLateError) return { reason: 'timeout', sent: false, cause: code };
  if (!hadConnection) return { reason: isOutOfFiles(code) ? 'too_many_files' : 'connect', sent: false, cause: code };
  if (error instanceof RequestNotProcessedError) return { reason: 'connect', sent: false, cause: code };
  const isLate = code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT';
  return { reason: isLate ? 'timeout' : 'reset', sent: true, cause: code, defect: defectOfError(error) };
}

const INVALID_REQUEST_CODES: ReadonlySet<string> = new Set(['UND_ERR_INVALID_ARG', 'UND_ERR_NOT_SUPPORTED']);

/** This process, or this machine, has reached its limit of open files. */
function isOutOfFiles(code: string | undefined): boolean {
  return code === 'EMFILE' || code === 'ENFILE';
}

/** The other side closed the connection, or is not there any more. */
export function isConnectionClosed(error: Error): boolean {
  const code = codeOf(error);
  return code === 'UND_ERR_SOCKET' || code === 'ECONNRESET' || code === 'ECONNABORTED' || code === 'EPIPE';
}

/** The code of an error, as the system or a library names it; undefined if it has none. */
export function codeOf(error: Error): string | undefined {
  if (!('code' in error) || typeof error.code !== 'string' || error.code === '') return undefined;
  return error.code === MASKED_RESET ? 'ECONNRESET' : error.code;
}
