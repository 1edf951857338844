import type { Millis } from '../scalars.ts';

/** The estimate takes effect once the upstream has closed this many idle connections in a row. */
const MIN_SAMPLES = 3;
/** A connection is reused only for this share of the upstream's idle timeout, because its close may be in transit. */
const SAFETY_FACTOR = 0.75;

/**
 * Estimates how long a connection may be idle and still be reused, for upstreams that close idle connections early
 * without announcing it (`Keep-Alive: timeout=`). A request that crosses such a close is lost, and the outcome of a
 * write is then unknown. The estimate takes the longest of the last lifetimes, because a restart of the upstream closes
 * connections of every age.
 */
export class KeepAliveEstimator {
  /** Idle time of the last connections that closed; Infinity for those that the proxy closed. */
  readonly #lifetimes: Millis[] = [];
  #maxIdle: Millis = Number.POSITIVE_INFINITY;

  /** The upstream closed a connection that had been idle for `idleFor`. */
  onPeerClosed(idleFor: Millis): void {
    this.#record(idleFor);
  }

  /** The proxy closed an idle connection. */
  onLocalClosed(): void {
    this.#record(Number.POSITIVE_INFINITY);
  }

  /** Infinity until there is an estimate. */
  get maxIdle(): Millis {
    return this.#maxIdle;
  }

  #record(lifetime: Millis): void {
    this.#lifetimes.push(lifetime);
    if (this.#lifetimes.length > MIN_SAMPLES) this.#lifetimes.shift();
    if (this.#lifetimes.length === MIN_SAMPLES) this.#maxIdle = SAFETY_FACTOR * Math.max(...this.#lifetimes);
  }
}
