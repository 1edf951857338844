import type { SentRequest } from '../protocol/usage-reporter.ts';

/** Entries of a new ring: small, because there may be a ring for each client. */
const MIN_RING = 4;
const MAX_RING = 1024;
/** Entries kept beyond those in flight: some requests never have a reported outcome. */
const MAX_LATE_EXTRA = 64;

/**
 * The requests that a worker has sent, by increasing serials. The newest are in a ring; a request that is still in flight when
 * its entry is reused moves to a `Map`. A `Map` alone would cost memory: under constant insertion and deletion V8 (Node 24)
 * often allocates a new table, and old tables keep alive what the new ones hold (see core/collections/active-set.ts).
 */
export class SentRequests {
  /** Its length is a power of two. */
  #ring = createRing(MIN_RING);
  #serials = createSerials(MIN_RING);
  #newest = 0;
  readonly #late = new Map<number, SentRequest>();

  /** @param inFlight requests in flight, this one included */
  record(serial: number, request: SentRequest, inFlight: number): void {
    if (2 * inFlight > this.#ring.length && this.#ring.length < MAX_RING) this.#grow();
    this.#put(serial, request);
    this.#newest = serial;
    if (this.#late.size <= inFlight + MAX_LATE_EXTRA) return;
    for (const oldest of this.#late.keys()) {
      this.#late.delete(oldest);
      break;
    }
  }

  /** Removes and returns a request; undefined if it is unknown. */
  take(serial: number): SentRequest | undefined {
    const at = serial & (this.#ring.length - 1);
    if (this.#serials[at] === serial) {
      const sending = this.#ring[at];
      this.#ring[at] = undefined;
      return sending;
    }
    const sending = this.#late.get(serial);
    if (sending !== undefined) this.#late.delete(serial);
    return sending;
  }

  /** A request sent at this time, usually one of the newest; undefined if there is none. */
  find(sentAt: number): SentRequest | undefined {
    const last = this.#ring.length - 1;
    for (let serial = this.#newest; serial >= this.#newest - last; serial -= 1) {
      const sending = this.#ring[serial & last];
      if (sending === undefined) continue;
      if (sending.sentAt === sentAt) return sending;
      if (sending.sentAt < sentAt) break;
    }
    for (const sending of this.#late.values()) if (sending.sentAt === sentAt) return sending;
    return undefined;
  }

  #put(serial: number, sending: SentRequest): void {
    const at = serial & (this.#ring.length - 1);
    const displaced = this.#ring[at];
    if (displaced !== undefined) this.#late.set(this.#serials[at] ?? 0, displaced);
    this.#ring[at] = sending;
    this.#serials[at] = serial;
  }

  #grow(): void {
    const [ring, serials] = [this.#ring, this.#serials];
    this.#ring = createRing(2 * ring.length);
    this.#serials = createSerials(2 * ring.length);
    for (const [at, sending] of ring.entries()) if (sending !== undefined) this.#put(serials[at] ?? 0, sending);
  }
}

function createRing(length: number): (SentRequest | undefined)[] {
  return Array.from({ length }, () => undefined);
}

/** Real serials start at 1. */
function createSerials(length: number): number[] {
  return Array.from({ length }, () => 0);
}
