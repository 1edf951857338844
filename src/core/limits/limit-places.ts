import type { Limit } from './limit.ts';
import type { MeterView } from './meter.ts';
import { smoothed } from './service-times.ts';
import type { Millis } from '../scalars.ts';
import type { ActiveClients } from '../admission/active-clients.ts';
import { SharedPlaces, OTHERS_ACTIVE_FOR, OTHERS_EXPECTED_FOR } from './shared-places.ts';
import type { GateStore } from '../admission/gate-store.ts';
import { NO_PLACES, type Ticket } from '../admission/ticket.ts';

/** Service times are learned of clients that hold this many places or more, after as many samples: most limits have few places. */
const TRACKS_FROM = 2;

/**
 * The places in flight at one limit, from the admission of a request to its response, or to the end of the response if that counts
 * too. Only while the limit is on the number in flight.
 */
export class LimitPlaces extends SharedPlaces {
  #held = 0;
  /** The client or address that was seen to hold most. */
  #topKey = '';
  /** When it last got a place. */
  #topTakenAt: Millis = Number.NEGATIVE_INFINITY;
  /** The most places at a time that all but that one held: in the present window of `OTHERS_ACTIVE_FOR`, and in the one before. */
  #peakOfOthers = 0;
  #previousPeak = 0;
  #window = Number.NEGATIVE_INFINITY;
  /** The mean time that a request of the others holds its place; undefined before the first one ends. */
  #serviceTimeOfOthers: Millis | undefined;

  constructor(limit: Limit, activeClients: ActiveClients) {
    super(limit, activeClients, TRACKS_FROM, OTHERS_EXPECTED_FOR);
  }

  /** Of a limit whose tokens are leased, the places that this process has now. */
  get size(): number {
    const { concurrencyLimit, tokens } = this.queueLimit.meter;
    return tokens === undefined ? (concurrencyLimit ?? Number.POSITIVE_INFINITY) : this.#held;
  }

  hold(fairnessKey: string, now: Millis): void {
    this.#held += 1;
    this.addHeld(fairnessKey);
    if (this.heldBy(fairnessKey) > this.heldBy(this.#topKey)) this.#topKey = fairnessKey;
    if (fairnessKey === this.#topKey) this.#topTakenAt = now;
    this.#roll(now);
    this.#peakOfOthers = Math.max(this.#peakOfOthers, this.#held - this.heldBy(this.#topKey));
  }

  /** @param took how long the request was under way; undefined if it was not sent */
  release(fairnessKey: string, took?: Millis): void {
    this.#held -= 1;
    if (took !== undefined && fairnessKey !== this.#topKey) {
      this.#serviceTimeOfOthers = smoothed(this.#serviceTimeOfOthers, took);
    }
    this.removeHeld(fairnessKey, took);
  }

  /**
   * How long the client or address that holds most has got no further place; 0 for others. If its requests hang, this is the only
   * sign.
   */
  stalledFor(fairnessKey: string, now: Millis): Millis {
    return fairnessKey === this.#topKey ? now - this.#topTakenAt : 0;
  }

  /**
   * While no more are free than the others have used at a time in the last seconds, and one more. It need not if others wait only
   * briefly for its own ones: it releases one, on average, within the time that a request of the others takes.
   */
  protected leavesFreePlaces(fairnessKey: string, now: Millis): boolean {
    if (this.queueLimit.meter.tokens !== undefined) return false; // the places that other processes leave free are not known
    this.#roll(now);
    const forOthers = Math.max(this.#peakOfOthers, this.#previousPeak) + 1;
    if (this.heldBy(fairnessKey) + forOthers < this.size) return false;
    const turnoverRate = this.turnoverRateOf(fairnessKey);
    return (
      turnoverRate === Number.POSITIVE_INFINITY ||
      turnoverRate * (this.#serviceTimeOfOthers ?? Number.POSITIVE_INFINITY) < 1000
    );
  }

  #roll(now: Millis): void {
    const window = Math.floor(now / OTHERS_ACTIVE_FOR);
    if (window === this.#window) return;
    this.#previousPeak = window === this.#window + 1 ? this.#peakOfOthers : 0;
    this.#peakOfOthers = 0;
    this.#window = window;
  }
}

/** Counts the places of a limit from now on, if it is on the number in flight. A limit of one client is not shared. */
export function trackPlaces(limit: Limit, store: GateStore): void {
  if (limit.places !== undefined || limit.ref.scope !== 'upstream') return;
  if (limit.meter.concurrencyLimit === undefined) return;
  limit.places = new LimitPlaces(limit, store.upstream(limit.ref.upstream).activeClients);
}

/** See `SharedPlaces.yieldDelay`: the longest, at any limit of the ticket. */
export function placeYieldDelay(ticket: Ticket, now: Millis): Millis {
  let delay = 0;
  if (ticket.reservedLimits.length > 0) return 0; // it has its place, and waits for a connection
  for (const { places } of ticket.limits) {
    if (places !== undefined) delay = Math.max(delay, places.yieldDelay(ticket, now));
  }
  return delay;
}

/** Whether its client, or its address, has more than its share of the places of a limit. */
export function exceedsPlaceShare(ticket: Ticket, now: Millis): boolean {
  const { fairnessKey, classWeight, isSentExternally, limits, reservedLimits } = ticket;
  if (isSentExternally || reservedLimits.length > 0) return false;
  return limits.some(({ places }) => places?.exceedsShare(fairnessKey, places.shareOf(classWeight, now)) === true);
}

/** Whether places in flight are counted at one of its limits. */
export function hasSharedPlaces(ticket: Ticket | undefined): boolean {
  return ticket !== undefined && ticket.limits.some(({ places }) => places !== undefined);
}

/** Releases the places in flight of a request that has its response, except where it counts until the end of the response. */
export function releasePlacesOnResponse(ticket: Ticket, now: Millis): void {
  if (ticket.heldPlaces.length === 0) return;
  const kept = ticket.heldPlaces.filter(({ queueLimit }) => isHeldUntilEnd(queueLimit.meter));
  releasePlaces(ticket, now - ticket.sentAt, kept);
}

/**
 * Releases the places in flight of a request that is over.
 * @param took how long it was under way; undefined if it was not sent
 */
export function releasePlaces(ticket: Ticket, took?: Millis, kept = NO_PLACES): void {
  for (const places of ticket.heldPlaces) if (!kept.includes(places)) places.release(ticket.fairnessKey, took);
  ticket.heldPlaces = kept;
}

/** Whether a request holds its place until the end of its response, because the limit is not that of latency. */
function isHeldUntilEnd({ concurrencyLimit, latencyLimit }: MeterView): boolean {
  return concurrencyLimit !== undefined && concurrencyLimit !== latencyLimit?.size;
}
