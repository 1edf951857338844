import type { Millis } from '../../scalars.ts';
import type { RequestAttributes } from './request-attributes.ts';
import { addressNumberOf, clientNumberOf } from './request-attributes.ts';

/** The most senders that are remembered: the last ones that were rejected. */
const MAX_SENDERS = 64;
const EXPIRY: Millis = 60_000;

/**
 * The addresses and clients that were rejected and not accepted since. If others were accepted meanwhile, one more rejection
 * of such a sender is no sign that the rate is too high, or that nothing is accepted: it may have a limit of its own.
 */
export class RejectedSenders {
  /** The number of an address or client, when its last rejected request was sent, and 1 if others were accepted since, else 0. */
  #senders: number[] = [];
  #sentAt: Millis[] = [];
  #isPassed: number[] = [];

  get isEmpty(): boolean {
    return this.#senders.length === 0;
  }

  /** Whether the sender was rejected, and since then others were accepted and it was not. */
  isPassedOver(attributes: RequestAttributes | undefined, now: Millis): boolean {
    if (attributes === undefined) return false;
    for (const sender of sendersOf(attributes)) {
      const at = this.#senders.indexOf(sender);
      if (at >= 0 && this.#isPassed[at] === 1 && now - (this.#sentAt[at] ?? 0) <= EXPIRY) return true;
    }
    return false;
  }

  onRejected(attributes: RequestAttributes | undefined, sentAt: Millis): void {
    if (attributes === undefined) return;
    for (const sender of sendersOf(attributes)) {
      const at = this.#senders.indexOf(sender);
      const isPassed = at < 0 ? 0 : (this.#isPassed[at] ?? 0);
      if (at >= 0) this.#remove(at);
      else if (this.#senders.length >= MAX_SENDERS) this.#remove(0);
      this.#senders.push(sender);
      this.#sentAt.push(sentAt);
      this.#isPassed.push(isPassed);
    }
  }

  /** @param attributes undefined if unknown: any sender may have been accepted */
  onAccepted(attributes: RequestAttributes | undefined, sentAt: Millis, now: Millis): void {
    if (this.isEmpty) return;
    const accepted = attributes === undefined ? this.#senders : sendersOf(attributes);
    for (let at = this.#senders.length - 1; at >= 0; at -= 1) {
      const rejectedAt = this.#sentAt[at] ?? 0;
      if (now - rejectedAt > EXPIRY) this.#remove(at);
      else if (sentAt > rejectedAt) {
        if (accepted.includes(this.#senders[at] ?? 0)) return this.#clear();
        this.#isPassed[at] = 1;
      }
    }
  }

  #clear(): void {
    this.#senders = [];
    this.#sentAt = [];
    this.#isPassed = [];
  }

  #remove(at: number): void {
    this.#senders.splice(at, 1);
    this.#sentAt.splice(at, 1);
    this.#isPassed.splice(at, 1);
  }
}

function sendersOf(attributes: RequestAttributes): number[] {
  const address = addressNumberOf(attributes) ?? 0;
  const client = clientNumberOf(attributes);
  return [address, client].filter((sender, i, all) => sender !== 0 && all.indexOf(sender) === i);
}
