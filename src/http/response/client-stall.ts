import type { Clock, Millis } from '../../core/exchange/attempt-outcome.ts';
import type { StalledReader, StalledReaders } from './stalled-clients.ts';

/** A connection to the upstream that a client keeps busy while it reads nothing of its answer, or sends nothing of its upload. */
export class Stall implements StalledReader {
  /** Since when the client is waited for; Infinity while it is not. */
  since: Millis = Number.POSITIVE_INFINITY;
  readonly upstream: string;
  readonly holder: string;
  readonly #stalled: StalledReaders;
  readonly #clock: Clock;
  readonly #onGiveWay: () => void;
  #hasStalled = false;

  /** @param onGiveWay called when others wait for the connection: the exchange must end */
  constructor({ upstream, holder, stalled, clock }: StallParts, onGiveWay: () => void) {
    this.upstream = upstream;
    this.holder = holder;
    this.#stalled = stalled;
    this.#clock = clock;
    this.#onGiveWay = onGiveWay;
  }

  /** The client has to read or send. Mostly for a moment and soon again, so it stays listed from the first time on. */
  wait(): void {
    this.since = this.#clock.now();
    if (this.#hasStalled) return;
    this.#hasStalled = true;
    this.#stalled.add(this);
  }

  /** It has done so. */
  rest(): void {
    this.since = Number.POSITIVE_INFINITY;
  }

  /** The exchange is over. */
  end(): void {
    if (this.#hasStalled) this.#stalled.remove(this);
  }

  giveWay(): void {
    this.#onGiveWay();
  }
}

export interface StallParts {
  readonly upstream: string;
  /** Its client, or all clients of one address. */
  readonly holder: string;
  readonly stalled: StalledReaders;
  readonly clock: Clock;
}
