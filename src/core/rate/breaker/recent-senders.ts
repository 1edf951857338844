import type { Millis } from '../../scalars.ts';
import type { BlockStatus } from './active-block.ts';
import type { RequestAttributes } from './request-attributes.ts';
import { addressNumberOf, clientNumberOf } from './request-attributes.ts';

const MAX_SENDERS = 64;
/** A sender took part in the failures that led to a block if one of its requests failed within this time before. */
export const TOOK_PART_WITHIN: Millis = 10_000;

/** Senders, each with the times of its last request of that kind and of its last probe; −Infinity for none. */
class SenderTimes {
  readonly #senders: number[] = [];
  readonly #times: Millis[] = [];
  readonly #probeTimes: Millis[] = [];
  #next = 0;

  /** @param sender 0 if unknown */
  add(sender: number, now: Millis): void {
    if (sender !== 0) this.#times[this.#findOrAdd(sender)] = now;
  }

  addProbe(sender: number, now: Millis): void {
    if (sender !== 0) this.#probeTimes[this.#findOrAdd(sender)] = now;
  }

  /** See `RecentSenders.probeTurn`. Returns undefined if there is no other sender since `from`. */
  probeTurn(sender: number, from: Millis, since: Millis): number | undefined {
    const at = this.#find(sender);
    const probedAt = this.#probeTimes[at] ?? Number.NEGATIVE_INFINITY;
    let before = 0;
    let after = 0;
    let hasUnprobed = false;
    for (let i = 0; i < this.#senders.length; i += 1) {
      const otherAt = this.#probeTimes[i] ?? since;
      if (i === at) continue;
      if (otherAt < since) hasUnprobed ||= (this.#times[i] ?? from) >= from;
      else if (otherAt < probedAt) before += 1;
      else after += 1;
    }
    if (hasUnprobed) before += 1;
    if (before + after === 0) return undefined;
    return probedAt < since ? 0 : before / (before + after);
  }

  isSince(sender: number, since: Millis): boolean {
    const at = this.#find(sender);
    return at >= 0 && (this.#times[at] ?? 0) >= since;
  }

  #find(sender: number): number {
    for (let i = 0; i < this.#senders.length; i += 1) if (this.#senders[i] === sender) return i;
    return -1;
  }

  #findOrAdd(sender: number): number {
    const known = this.#find(sender);
    if (known >= 0) return known;
    const at = this.#next;
    this.#next = (at + 1) % MAX_SENDERS;
    this.#senders[at] = sender;
    this.#times[at] = Number.NEGATIVE_INFINITY;
    this.#probeTimes[at] = Number.NEGATIVE_INFINITY;
    return at;
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

  /** Its request is being sent as the probe of a block. */
  addProbe(attributes: RequestAttributes, now: Millis): void {
    this.#addresses.addProbe(addressNumberOf(attributes) ?? 0, now);
    this.#clients.addProbe(clientNumberOf(attributes), now);
  }

  /**
   * How long a sender leaves the next probe to the others, as a share of the longest time: 0 if it has sent no probe of this block,
   * else by the order of the last probes, up to 1 for the last one. All others without a probe count as one sender before it: they may
   * not come. Clients are distinguished if one address is blocked alone, or there is no other address.
   */
  probeTurn(attributes: RequestAttributes, { scope, since }: Pick<BlockStatus, 'scope' | 'since'>): number {
    const from = since - TOOK_PART_WITHIN;
    const isOfClients = addressNumberOf(scope) !== undefined;
    const ofAddress = isOfClients
      ? undefined
      : this.#addresses.probeTurn(addressNumberOf(attributes) ?? 0, from, since);
    return ofAddress ?? this.#clients.probeTurn(clientNumberOf(attributes), from, since) ?? 0;
  }
}
