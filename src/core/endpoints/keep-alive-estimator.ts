import type { Millis } from '../exchange/attempt-outcome.ts';

/** So many idle connections in a row have to be closed by the upstream before it is believed to be its habit. */
const AGREEING = 3;
/** A connection is used again for this share of the time that the upstream keeps it: its close may be on the way. */
const MARGIN = 0.75;

/**
 * How long a connection may have been idle to be used again. An upstream that closes idle connections early, and does
 * not say so (`Keep-Alive: timeout=`), is found out: a request that crosses its close is lost, and an unsafe write with
 * it is told as unknown. A restart closes connections of every age; the longest of the last ones bounds.
 */
export class IdleLimit {
  /** Of the last idle connections, how long each was kept; Infinity where we ended it ourselves. */
  readonly #kept: Millis[] = [];
  #limit: Millis = Number.POSITIVE_INFINITY;

  /** The upstream closed a connection that had been idle for so long. */
  closed(idleFor: Millis): void {
    this.#note(idleFor);
  }

  /** One was idle until we closed it. */
  outlived(): void {
    this.#note(Number.POSITIVE_INFINITY);
  }

  /** Infinity while nothing is known. */
  get limit(): Millis {
    return this.#limit;
  }

  #note(kept: Millis): void {
    this.#kept.push(kept);
    if (this.#kept.length > AGREEING) this.#kept.shift();
    if (this.#kept.length === AGREEING) this.#limit = MARGIN * Math.max(...this.#kept);
  }
}
