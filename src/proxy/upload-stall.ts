import type { Clock, Millis } from '../policy/types.ts';
import type { StalledReader, StalledReaders } from './stalled-readers.ts';

/** A streamed upload that keeps its connection to the upstream while its client sends nothing. */
export class UploadStall implements StalledReader {
  /** Since when nothing has come; Infinity while nothing is waited for. */
  since: Millis = Number.POSITIVE_INFINITY;
  readonly upstream: string;
  readonly holder: string;
  readonly #stalled: StalledReaders;
  readonly #clock: Clock;
  readonly #onGiveWay: () => void;
  #hasStalled = false;

  /** @param onGiveWay others wait for the connection: the upload is to be given up */
  constructor({ upstream, holder, stalled, clock }: UploadStallParts, onGiveWay: () => void) {
    this.upstream = upstream;
    this.holder = holder;
    this.#stalled = stalled;
    this.#clock = clock;
    this.#onGiveWay = onGiveWay;
  }

  /** More is wanted. */
  wait(): void {
    this.since = this.#clock.now();
    if (this.#hasStalled) return;
    this.#hasStalled = true;
    this.#stalled.add(this);
  }

  /** Nothing is wanted for now. */
  rest(): void {
    this.since = Number.POSITIVE_INFINITY;
  }

  end(): void {
    if (this.#hasStalled) this.#stalled.remove(this);
  }

  giveWay(): void {
    this.#onGiveWay();
  }
}

export interface UploadStallParts {
  readonly upstream: string;
  /** Its client, or all clients of one address. */
  readonly holder: string;
  readonly stalled: StalledReaders;
  readonly clock: Clock;
}
