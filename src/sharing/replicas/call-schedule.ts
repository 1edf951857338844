import type { Millis } from '../../core/scalars.ts';

/** The minimum interval between calls, even for urgent reports. */
const MIN_CALL_INTERVAL: Millis = 2;
/** More tokens are requested this long before the last one in hand is due. */
const REFILL_LEAD: Millis = 50;
/** Expected demand is covered this far ahead. */
export const DEMAND_HORIZON: Millis = 100;
/** The maximum interval between calls of a replica that has tokens or requests in flight, or whose clients are to return. */
const HEARTBEAT: Millis = 1000;

/** The maximum delay of what is not urgent, so that several reports share one call. */
const REPORT_WITHIN: Millis = 100;
const REPORT_DELAY_PER_REPLICA: Millis = 0.2;
/** In fallback, the backend is called again after this delay, doubled after each failure, with jitter. */
export const FIRST_RECONNECT: Millis = 250;
const MAX_RECONNECT: Millis = 2000;

/** The delay of the next call after this many failures in a row. @param random in [0, 1) */
export function reconnectDelay(failures: number, random: number): Millis {
  return Math.min(MAX_RECONNECT, FIRST_RECONNECT * 2 ** (failures - 1)) * (0.5 + 0.5 * random);
}

/** When to call the backend about one limit next. */
export class CallSchedule {
  /** Usage has been recorded since the last call. */
  hasUnreported = false;
  #calledAt: Millis = Number.NEGATIVE_INFINITY;
  /** The deadline of the next report; Infinity while there is nothing to report. */
  #reportBy: Millis = Number.POSITIVE_INFINITY;
  /** When more tokens may be needed. */
  #nextRefillAt: Millis = Number.POSITIVE_INFINITY;

  /** When the last call was made. */
  get calledAt(): Millis {
    return this.#calledAt;
  }

  /** Infinity if no call is due. */
  get nextCallAt(): Millis {
    return Math.min(this.#reportBy, this.#nextRefillAt);
  }

  get isReportScheduled(): boolean {
    return this.#reportBy < Number.POSITIVE_INFINITY;
  }

  isReportDue(now: Millis): boolean {
    return now >= this.#reportBy;
  }

  /** A call is made, with all that there is to report. */
  onCall(now: Millis): void {
    this.#calledAt = now;
    this.#reportBy = Number.POSITIVE_INFINITY;
    this.#nextRefillAt = Number.POSITIVE_INFINITY;
    this.hasUnreported = false;
  }

  /** The tokens in hand suffice. */
  postponeRefill(inHand: number, now: Millis): void {
    this.#nextRefillAt = inHand > 0 ? now + REFILL_LEAD : Number.POSITIVE_INFINITY;
  }

  /** Replaces the deadline after a failure. @param at Infinity if nothing is to be retried */
  retryAt(at: Millis): void {
    this.#reportBy = at;
    this.#nextRefillAt = Number.POSITIVE_INFINITY;
  }

  /** Moves the deadline of the next report forward. Returns whether it is earlier now. */
  reportBy(at: Millis): boolean {
    if (at >= this.#reportBy) return false;
    this.#reportBy = at;
    return true;
  }

  /** As `reportBy`, for what the backend has to know of as long as it lasts. */
  reportWithinHeartbeat(now: Millis): boolean {
    return this.reportBy(now + HEARTBEAT);
  }

  /** As `reportBy`, later with many replicas: calls then cost more than late reports. */
  reportSoon(now: Millis, replicas: number): boolean {
    return this.reportBy(now + Math.max(REPORT_WITHIN, replicas * REPORT_DELAY_PER_REPLICA));
  }

  /** As `reportBy`, as soon as the minimum interval between calls allows. */
  reportNow(now: Millis): boolean {
    return this.reportBy(Math.max(now, this.#calledAt + MIN_CALL_INTERVAL));
  }

  /**
   * Schedules the next call after a response.
   * @param askAgainAt when the backend may have more of the requested tokens
   * @param hasActivity requests are in flight, or refused clients are to return
   * @param tokens those in hand, the time of the last one, and how fast they are used
   */
  onResponse(
    askAgainAt: Millis,
    tokens: { readonly inHand: number; readonly lastSlot: Millis | undefined; readonly usedPerSecond: number },
    hasActivity: boolean,
    now: Millis,
  ): void {
    const earliest = this.#calledAt + MIN_CALL_INTERVAL;
    if (hasActivity || tokens.inHand > 0) this.reportWithinHeartbeat(now);
    this.#nextRefillAt = Math.max(earliest, Math.min(askAgainAt, refillAt(tokens, now)));
    this.#reportBy = Math.max(earliest, this.#reportBy);
  }
}

/** Before the last token in hand is due, and before all are used at the recent rate; Infinity without tokens. */
function refillAt({ inHand, lastSlot, usedPerSecond }: Parameters<CallSchedule['onResponse']>[1], now: Millis): Millis {
  if (lastSlot === undefined) return Number.POSITIVE_INFINITY;
  const usedUpAt = now + Math.min(DEMAND_HORIZON, (1000 * inHand) / usedPerSecond);
  return Math.max(now + REFILL_LEAD, lastSlot - REFILL_LEAD, usedUpAt - REFILL_LEAD / 2);
}
