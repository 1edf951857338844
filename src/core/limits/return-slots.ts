import type { Millis, PerSecond } from '../scalars.ts';
import type { AddressSlots } from './address-slots.ts';
import type { MeterView } from './meter.ts';
import { NO_PROMISE, type ReturnPromise, type ReturnPromises } from './return-promises.ts';

/** The longest Retry-After that follows from a learned rate. One that the upstream asks for may be longer. */
export const MAX_LEARNED_RETRY_AFTER: Millis = 30_000;

/**
 * Return slots are this many turns apart while more than a second's worth of requests waits. The queue takes requests without
 * a slot too. With slots at the full rate, these would delay all later ones, because the queue would never get shorter.
 */
const BACKLOG_SPACING = 1.1;

/** The slots that were reserved while a quota was in force. */
interface QuotaSlots {
  /** The first of them, and the last one before it. */
  readonly from: Millis;
  readonly lastBefore: Millis;
  /** When the quota is available again; −Infinity if it is not spent. */
  readonly until: Millis;
}

/** Requests a second of the mean cost: see `MeterView.returnRate`. */
export function returnRateOf(meter: MeterView, now: Millis, weight = 1): PerSecond {
  return (meter.returnRate?.(now, weight) ?? meter.rate(now)) / (meter.meanCost ?? 1);
}

/** The times at which the refused clients of one limit should return. */
export abstract class ReturnSlots {
  abstract readonly meter: MeterView;
  abstract readonly queue: { readonly size: number };
  /** The slots of refused clients. Those beyond the first of an address are created on first use. */
  lastReturnSlot: Millis = Number.NEGATIVE_INFINITY;
  addressSlots: AddressSlots | undefined = undefined;
  /** Created on first use, and only if its upstream has several limits. */
  returnPromises: ReturnPromises | undefined = undefined;
  #quotaSlots: QuotaSlots | undefined = undefined;

  promisedReturn(client: string): ReturnPromise {
    return this.returnPromises?.get(client) ?? NO_PROMISE;
  }

  /** −Infinity if the address has none. */
  lastSlotOfAddress(address: string): Millis {
    return this.addressSlots?.last(address) ?? Number.NEGATIVE_INFINITY;
  }

  /**
   * Gives back the slots of a quota that has ended before its time, because it turned out not to cover all requests: nobody is
   * refused until then. To be called before a slot is reserved or read.
   * @param turn when the request could be served
   */
  followQuota(turn: Millis, now: Millis): void {
    const { meter } = this;
    if (meter.isQuotaInForce(now)) {
      const { from, lastBefore } = this.#quotaSlots ?? { from: turn, lastBefore: this.lastReturnSlot };
      this.#quotaSlots = { from, lastBefore, until: meter.quotaOwner(now)?.until ?? Number.NEGATIVE_INFINITY };
      return;
    }
    const slots = this.#quotaSlots;
    if (slots === undefined) return;
    this.#quotaSlots = undefined;
    const isAtReset = slots.until > Number.NEGATIVE_INFINITY && now >= slots.until;
    if (isAtReset) return;
    this.lastReturnSlot = Math.min(this.lastReturnSlot, slots.lastBefore);
    this.addressSlots?.releaseFrom(slots.from);
  }

  /**
   * Reserves the time at which a refused client should return. Each one gets the next slot, so that clients return at the
   * limit's rate instead of all at once.
   * @param wait how long the request would have had to wait
   */
  reserveReturnSlot(now: Millis, wait: Millis, rate: PerSecond = returnRateOf(this.meter, now)): Millis {
    const spacing = this.queue.size > rate ? BACKLOG_SPACING : 1;
    const next = Math.max(this.lastReturnSlot, now + wait) + (spacing * 1000) / rate;
    this.lastReturnSlot = Math.min(next, now + wait + MAX_LEARNED_RETRY_AFTER);
    return this.lastReturnSlot;
  }

  /** A request returns in a slot that was not in this sequence: later slots are one turn later, if some are reserved. */
  delayReturnSlots(now: Millis): void {
    const next = Math.min(this.lastReturnSlot + 1000 / returnRateOf(this.meter, now), now + MAX_LEARNED_RETRY_AFTER);
    if (this.lastReturnSlot > now && this.lastReturnSlot < next) this.lastReturnSlot = next;
  }
}
