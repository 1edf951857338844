import type { Millis } from '../../core/scalars.ts';

/** Without any response for this long, the connection may be half open. */
const RECONNECT_AFTER: Millis = 2000;
/** While Redis does not respond, one request is sent after this time, and each further one after twice as long. */
const FIRST_INTERVAL: Millis = 125;
const MAX_INTERVAL: Millis = 2000;

/**
 * Whether Redis has stopped responding on an open connection. Then nearly all requests fail at once: each of them might have to be
 * undone later, and would wait in the memory of this process.
 */
export class ConnectionSilence {
  #lastResponseAt: Millis = Number.NEGATIVE_INFINITY;
  /** When the first of the requests was sent that had no response in time, with none to others since; undefined if Redis responds. */
  #since: Millis | undefined = undefined;
  #nextSendAt: Millis = Number.NEGATIVE_INFINITY;
  #interval: Millis = FIRST_INTERVAL;

  /** Whether a request may be sent now. @param isProbe it may in any case */
  maySend(isProbe: boolean, now: Millis): boolean {
    if (this.#since === undefined || isProbe) return true;
    if (now < this.#nextSendAt) return false;
    this.#nextSendAt = now + this.#interval;
    this.#interval = Math.min(2 * this.#interval, MAX_INTERVAL);
    return true;
  }

  onResponse(now: Millis): void {
    this.#lastResponseAt = now;
    this.#since = undefined;
    this.#interval = FIRST_INTERVAL;
  }

  /** The next request may be sent at once. */
  onRecoverySign(): void {
    this.#nextSendAt = Number.NEGATIVE_INFINITY;
    this.#interval = FIRST_INTERVAL;
  }

  /** A request had no response in time. Returns whether to reconnect, which is never more often than the time above. */
  onTimeout(sentAt: Millis, now: Millis): boolean {
    if (sentAt < this.#lastResponseAt) return false;
    this.#since ??= sentAt;
    if (now - this.#since < RECONNECT_AFTER) return false;
    this.#since = now;
    return true;
  }
}
