import type { Millis } from '../../scalars.ts';
import type { RequestAttributes } from './request-attributes.ts';
import { addressNumberOf, clientNumberOf } from './request-attributes.ts';

/** The most senders that are remembered: the last ones that were rejected. */
const MAX_SENDERS = 64;
const RECORD_LENGTH = 4;

/**
 * The addresses and clients of which requests were rejected, or failed, and none was accepted since. If others were accepted
 * meanwhile, one more rejection or failure of such a sender is no sign that the rate is too high, or that nothing is
 * accepted: it may have a limit, or a fault, of its own.
 */
export class FailingSenders {
  /**
   * Each has four numbers: its own, when its first and its last rejected request were sent, and 1 if others were accepted that were sent
   * after the first, else 0. Slow requests of a sender that is often rejected are all older than its last rejection.
   */
  #numbers: number[] = [];
  readonly #expiry: Millis;

  /** @param expiry how long a sender is remembered after its last rejection or failure */
  constructor(expiry: Millis) {
    this.#expiry = expiry;
  }

  get isEmpty(): boolean {
    return this.#numbers.length === 0;
  }

  /** Whether the sender was rejected, and of the requests sent since then others were accepted and its own were not. */
  isPassedOver(attributes: RequestAttributes | undefined, now: Millis): boolean {
    return this.findPassedOver(attributes, now) !== undefined;
  }

  /** The number of the address, else of the client, that `isPassedOver` is about; undefined if neither is passed over. */
  findPassedOver(attributes: RequestAttributes | undefined, now: Millis): number | undefined {
    if (attributes === undefined) return undefined;
    for (const sender of sendersOf(attributes)) {
      const at = this.#find(sender);
      if (at >= 0 && this.#numbers[at + 3] === 1 && now - (this.#numbers[at + 2] ?? 0) <= this.#expiry) return sender;
    }
    return undefined;
  }

  /** A request was rejected, or failed. */
  add(attributes: RequestAttributes | undefined, sentAt: Millis): void {
    if (attributes === undefined) return;
    for (const sender of sendersOf(attributes)) {
      const at = this.#find(sender);
      const isKnown = at >= 0 && sentAt - (this.#numbers[at + 2] ?? 0) <= this.#expiry;
      const firstAt = isKnown ? (this.#numbers[at + 1] ?? sentAt) : sentAt;
      const isPassed = isKnown ? (this.#numbers[at + 3] ?? 0) : 0;
      if (at >= 0) this.#numbers.splice(at, RECORD_LENGTH);
      else if (this.#numbers.length >= RECORD_LENGTH * MAX_SENDERS) this.#numbers.splice(0, RECORD_LENGTH);
      this.#numbers.push(sender, firstAt, sentAt, isPassed);
    }
  }

  /** @param attributes undefined if unknown: any sender may have been accepted */
  onAccepted(attributes: RequestAttributes | undefined, sentAt: Millis, now: Millis): void {
    if (this.isEmpty) return;
    const accepted = attributes === undefined ? undefined : sendersOf(attributes);
    for (let at = this.#numbers.length - RECORD_LENGTH; at >= 0; at -= RECORD_LENGTH) {
      const firstAt = this.#numbers[at + 1] ?? 0;
      if (now - (this.#numbers[at + 2] ?? 0) > this.#expiry) this.#numbers.splice(at, RECORD_LENGTH);
      else if (sentAt > firstAt) {
        if (accepted === undefined || accepted.includes(this.#numbers[at] ?? 0)) {
          this.#numbers = [];
          return;
        }
        this.#numbers[at + 3] = 1;
      }
    }
  }

  /** Passes over no sender until a request of another one that is sent from now on is accepted: what was accepted before is no sign. */
  restart(now: Millis): void {
    for (let at = 0; at < this.#numbers.length; at += RECORD_LENGTH) {
      this.#numbers[at + 1] = now;
      this.#numbers[at + 3] = 0;
    }
  }

  /** The index of a sender; -1 if it is not there. */
  #find(sender: number): number {
    for (let at = 0; at < this.#numbers.length; at += RECORD_LENGTH) if (this.#numbers[at] === sender) return at;
    return -1;
  }
}

function sendersOf(attributes: RequestAttributes): number[] {
  const address = addressNumberOf(attributes) ?? 0;
  const client = clientNumberOf(attributes);
  return [address, client].filter((sender, i, all) => sender !== 0 && all.indexOf(sender) === i);
}
