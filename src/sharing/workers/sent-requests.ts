import type { Sending } from '../protocol/authoritative-limit.ts';

/** Places: there may be a ring for each client. */
const FEWEST = 4;
const MOST = 1024;
/** So many are remembered beyond those in flight: of some, no outcome is ever told. */
const SPARE = 64;

/**
 * What a leaseholder has sent, by serials that count up. Those of the last moment are in a ring, where each has the place of the one
 * so many sends before it; only what is still on its way by then goes to a `Map`. Of a `Map` that all of them come to and leave V8
 * (Node 24) makes a new table after every few, and the old ones keep what the new ones hold (see core/collections/active-set.ts).
 */
export class Sendings {
  /** A power of two of places. */
  #ring = emptyRing(FEWEST);
  #serials = noSerials(FEWEST);
  #newest = 0;
  readonly #late = new Map<number, Sending>();

  /** @param inFlight how many are, this one included */
  note(serial: number, sending: Sending, inFlight: number): void {
    if (2 * inFlight > this.#ring.length && this.#ring.length < MOST) this.#grow();
    this.#put(serial, sending);
    this.#newest = serial;
    if (this.#late.size <= inFlight + SPARE) return;
    for (const oldest of this.#late.keys()) {
      this.#late.delete(oldest);
      break;
    }
  }

  /** Forgets it. Undefined where it is not known, or not any more. */
  take(serial: number): Sending | undefined {
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

  /** One that was sent at this time: mostly one of the newest. */
  find(sentAt: number): Sending | undefined {
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

  #put(serial: number, sending: Sending): void {
    const at = serial & (this.#ring.length - 1);
    const before = this.#ring[at];
    if (before !== undefined) this.#late.set(this.#serials[at] ?? 0, before);
    this.#ring[at] = sending;
    this.#serials[at] = serial;
  }

  #grow(): void {
    const [ring, serials] = [this.#ring, this.#serials];
    this.#ring = emptyRing(2 * ring.length);
    this.#serials = noSerials(2 * ring.length);
    for (const [at, sending] of ring.entries()) if (sending !== undefined) this.#put(serials[at] ?? 0, sending);
  }
}

function emptyRing(length: number): (Sending | undefined)[] {
  return Array.from({ length }, () => undefined);
}

/** They begin with 1. */
function noSerials(length: number): number[] {
  return Array.from({ length }, () => 0);
}
