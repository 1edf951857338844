import type { Clock, Millis } from '../../../core/scalars.ts';

/** How long an upstream has to keep to the protocol before requests share connections again. */
const UNSHARED_TIME: Millis = 10 * 60_000;

/**
 * Whether Node has closed a session because of what the upstream sent: nghttp2 then returns an error, with a number. A GOAWAY that
 * was received and a failure of the socket give other errors.
 */
export function isProtocolViolation(error: Error | undefined): error is Error {
  if (error === undefined || !('code' in error && 'errno' in error)) return false;
  return typeof error.code === 'string' && error.code.startsWith('ERR_HTTP2_') && typeof error.errno === 'number';
}

/**
 * Whether requests to an endpoint may share HTTP/2 connections. A response with DATA that must not be there, for example, makes
 * nghttp2 close the connection with all requests on it, and one client can ask for such a response again and again. So a violation
 * of the protocol stops the sharing, and each further one prolongs that.
 */
export class ConnectionSharing {
  readonly #clock: Clock;
  #pausedUntil: Millis | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get isPaused(): boolean {
    return this.#pausedUntil !== undefined;
  }

  /** Returns whether it was not paused before. */
  pause(): boolean {
    const { isPaused } = this;
    this.#pausedUntil = this.#clock.now() + UNSHARED_TIME;
    return !isPaused;
  }

  /** Ends a pause that is over. Returns whether it did. */
  resumeIfDue(): boolean {
    if (this.#pausedUntil === undefined || this.#clock.now() < this.#pausedUntil) return false;
    this.#pausedUntil = undefined;
    return true;
  }
}
