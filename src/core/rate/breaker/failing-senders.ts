import type { Millis } from '../../scalars.ts';
import type { RequestAttributes } from './request-attributes.ts';
import { addressNumberOf, clientNumberOf } from './request-attributes.ts';

/** The most addresses and clients that are remembered: the last ones that were rejected. */
const MAX_SENDERS = 256;
const RECORD_LENGTH = 3;

/**
 * The addresses and clients of which requests were rejected, or failed, and none was accepted since. If others were accepted
 * meanwhile, one more rejection or failure of such a sender is no sign that the rate is too high, or that nothing is
 * accepted: it may have a limit, or a fault, of its own.
 */
export class FailingSenders {
  /**
   * Each has three numbers: its own, when its first rejected request was sent, and when its last one was rejected. Slow requests of a
   * sender that is often rejected are all older than its last rejection.
   */
  #numbers: number[] = [];
  /** The latest time at which an accepted request of another sender was sent. */
  #othersSentAt: Millis = Number.NEGATIVE_INFINITY;
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
      const at = this.#find(sender, now);
      if (at >= 0 && this.#othersSentAt > (this.#numbers[at + 1] ?? 0)) return sender;
    }
    return undefined;
  }

  /** A request was rejected, or failed. */
  add(attributes: RequestAttributes | undefined, sentAt: Millis, now: Millis): void {
    if (attributes === undefined) return;
    for (const sender of sendersOf(attributes)) {
      const at = this.#find(sender);
      const isKnown = this.#find(sender, now) >= 0;
      const firstAt = isKnown ? (this.#numbers[at + 1] ?? sentAt) : sentAt;
      if (at >= 0) this.#numbers.splice(at, RECORD_LENGTH);
      else if (this.#numbers.length >= RECORD_LENGTH * MAX_SENDERS) this.#numbers.splice(0, RECORD_LENGTH);
      this.#numbers.push(sender, firstAt, now);
    }
  }

  /**
   * A client that had failed shows that requests fail by chance: no sender is passed over any more. Of its address, that is not clear,
   * because others may have it too: then only the address is forgotten.
   * @param attributes undefined if unknown: any sender may have been accepted
   */
  onAccepted(attributes: RequestAttributes | undefined, sentAt: Millis, now: Millis): void {
    if (this.isEmpty) return;
    // The last record is of the last rejection: if that is expired, all are.
    const hasExpired = now - (this.#numbers.at(-1) ?? 0) > this.#expiry;
    if (hasExpired || attributes === undefined || this.#hasFailedBefore(clientOf(attributes), sentAt, now)) {
      this.#numbers = [];
      return;
    }
    this.#othersSentAt = Math.max(this.#othersSentAt, sentAt);
    const address = addressNumberOf(attributes) ?? 0;
    if (this.#hasFailedBefore(address, sentAt, now)) this.#numbers.splice(this.#find(address), RECORD_LENGTH);
  }

  /** Passes over no sender until a request of another one that is sent from now on is accepted: what was accepted before is no sign. */
  restart(now: Millis): void {
    for (let at = 0; at < this.#numbers.length; at += RECORD_LENGTH) this.#numbers[at + 1] = now;
  }

  #hasFailedBefore(sender: number, sentAt: Millis, now: Millis): boolean {
    const at = this.#find(sender, now);
    return at >= 0 && sentAt > (this.#numbers[at + 1] ?? 0);
  }

  /** The index of a sender; -1 if it is not there. @param now given if it must not have expired */
  #find(sender: number, now?: Millis): number {
    for (let at = 0; at < this.#numbers.length; at += RECORD_LENGTH) {
      if (this.#numbers[at] !== sender) continue;
      return now !== undefined && now - (this.#numbers[at + 2] ?? 0) > this.#expiry ? -1 : at;
    }
    return -1;
  }
}

/** The number of the client; of the address if there is none. */
function clientOf(attributes: RequestAttributes): number {
  return clientNumberOf(attributes) || (addressNumberOf(attributes) ?? 0);
}

function sendersOf(attributes: RequestAttributes): number[] {
  const address = addressNumberOf(attributes) ?? 0;
  const client = clientNumberOf(attributes);
  return [address, client].filter((sender, i, all) => sender !== 0 && all.indexOf(sender) === i);
}
