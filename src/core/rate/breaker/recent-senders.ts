import type { Millis } from '../../scalars.ts';
import type { BlockStatus } from './active-block.ts';
import type { RequestAttributes } from './request-attributes.ts';
import { addressNumberOf, clientNumberOf } from './request-attributes.ts';

const MAX_SENDERS = 64;
/** A sender took part in the failures that led to a block if one of its requests failed within this time before. */
export const TOOK_PART_WITHIN: Millis = 10_000;

/** Senders, each with the time of its last request of that kind. */
class SenderTimes {
  readonly #senders: number[] = [];
  readonly #times: Millis[] = [];
  #next = 0;

  /** @param sender 0 if unknown */
  add(sender: number, now: Millis): void {
    if (sender === 0) return;
    let at = this.#find(sender);
    if (at < 0) {
      at = this.#next;
      this.#next = (at + 1) % MAX_SENDERS;
    }
    this.#senders[at] = sender;
    this.#times[at] = now;
  }

  isSince(sender: number, since: Millis): boolean {
    const at = this.#find(sender);
    return at >= 0 && (this.#times[at] ?? 0) >= since;
  }

  #find(sender: number): number {
    for (let i = 0; i < this.#senders.length; i += 1) if (this.#senders[i] === sender) return i;
    return -1;
  }
}

/** The senders of the last failed requests, or of the last accepted ones, by address and by client. */
export class RecentSenders {
  readonly #addresses = new SenderTimes();
  readonly #clients = new SenderTimes();

  #lastAt: Millis = Number.NEGATIVE_INFINITY;

  add(attributes: RequestAttributes, now: Millis): void {
    this.#lastAt = now;
    this.#addresses.add(addressNumberOf(attributes) ?? 0, now);
    this.#clients.add(clientNumberOf(attributes), now);
  }

  /** Whether there is any since shortly before this block began. */
  hasAny({ since }: Pick<BlockStatus, 'since'>): boolean {
    return this.#lastAt >= since - TOOK_PART_WITHIN;
  }

  /**
   * Whether the sender of a request is among them since shortly before this block began. Keys are free: clients are distinguished
   * only if one address is blocked alone.
   */
  includes(attributes: RequestAttributes, { scope, since }: Pick<BlockStatus, 'scope' | 'since'>): boolean {
    const from = since - TOOK_PART_WITHIN;
    if (addressNumberOf(scope) === undefined) {
      return this.#addresses.isSince(addressNumberOf(attributes) ?? 0, from);
    }
    return clientNumberOf(scope) === 0 && this.#clients.isSince(clientNumberOf(attributes), from);
  }
}
