import { Readable } from 'node:stream';
import type { Clock, Millis } from '../../../core/scalars.ts';
import type { DispatchRequest } from '../dispatch-request.ts';
import { AcceptedHeads, measureHead } from './accepted-heads.ts';

/** How long an upstream has to keep to the protocol before requests share connections again. */
const UNSHARED_TIME: Millis = 10 * 60_000;

/**
 * Whether requests to an endpoint may share HTTP/2 connections. A response with DATA that must not be there, for example, makes
 * nghttp2 close the connection with all requests on it, and one client can ask for such a response again and again. So a violation
 * of the protocol stops the sharing, and each further one prolongs that. A request with a head that is not known to be accepted
 * shares no connection either, nor does a streamed body: HAProxy, for example, reads nothing of a connection while a body on it is
 * not read.
 */
export class ConnectionSharing {
  /** The largest head that the upstream accepts, as it announced last; undefined if it has not announced any. */
  maxHeaderListSize: number | undefined = undefined;
  readonly #clock: Clock;
  readonly #heads: AcceptedHeads;
  #pausedUntil: Millis | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#heads = new AcceptedHeads(clock);
  }

  /** Whether this request may share a connection with others. */
  includes({ path, headers, body }: DispatchRequest): boolean {
    if (this.isPaused || body instanceof Readable) return false;
    const size = measureHead(path, headers);
    return size.total <= (this.maxHeaderListSize ?? Infinity) && this.#heads.includes(size);
  }

  /** A request on an unshared connection was answered. Returns whether more requests may share connections from now on. */
  onResponse({ path, headers }: DispatchRequest, status: number): boolean {
    return this.#heads.onResponse(measureHead(path, headers), status);
  }

  /** A shared connection ended with this request on it. @param wasRejected the endpoint closed it with an error */
  onConnectionLost({ path, headers }: DispatchRequest, wasRejected: boolean): void {
    this.#heads.onConnectionLost(measureHead(path, headers), wasRejected);
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
