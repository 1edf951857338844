import { earliestReturn, isReturningOnTime, RETURN_LATE_BY } from '../../core/hints/return-time.ts';
import type { ClientSlot, PlaceReservation, ReturnPlaces } from '../../core/admission/client-allowance.ts';
import type { Millis } from '../../core/scalars.ts';
import type { ClientRecords } from './client-records.ts';

/** Places so close to each other are counted together. */
const SPAN: Millis = 500;
/** More than a learned Retry-After spans: 30 s, and the wait before it. */
const MAX_SPANS = 128;
/** Clients with several places at a time. Beyond that, the client that has had several for longest keeps its last one. */
const MAX_CLIENTS = 10_000;

interface PlacesInSpan {
  readonly from: Millis;
  count: number;
}

/**
 * The places reserved for clients that were asked to return. A place is for one request, from the earliest time that its
 * Retry-After allows. The last place of a client is in its record; a client has several if several of its requests were refused.
 */
export class ReservedPlaces implements ReturnPlaces {
  readonly #records: ClientRecords;
  readonly #spans = new Map<ClientSlot, PlacesInSpan[]>();

  constructor(records: ClientRecords) {
    this.#records = records;
  }

  promisedReturn(slot: ClientSlot): Millis {
    return this.#records.get(slot, 'promisedAt');
  }

  askToReturn(slot: ClientSlot, delay: Millis, place: PlaceReservation, now: Millis): void {
    const before = this.#records.placeFrom(slot);
    if (place !== 'only' && before !== undefined && now <= before + RETURN_LATE_BY) this.#add(slot, before, now);
    this.#records.set(slot, 'promisedAt', now + delay);
    if (place === 'none') this.#records.clearPlace(slot);
    else this.#records.setPlaceFrom(slot, earliestReturn(delay, now));
  }

  isReserved(slot: ClientSlot, now: Millis): boolean {
    const last = this.#records.placeFrom(slot);
    return (
      (last !== undefined && isReturningOnTime(last, now)) ||
      this.#unexpired(slot, now)?.some((span) => isDue(span, now)) === true
    );
  }

  take(slot: ClientSlot, now: Millis): void {
    let earliest: PlacesInSpan | undefined;
    for (const span of this.#unexpired(slot, now) ?? []) {
      if (isDue(span, now) && (earliest === undefined || span.from < earliest.from)) earliest = span;
    }
    if (earliest === undefined) this.#records.clearPlace(slot);
    else earliest.count -= 1;
  }

  /** Forgets all places but the last. */
  clear(slot: ClientSlot): void {
    this.#spans.delete(slot);
  }

  #add(slot: ClientSlot, earliest: Millis, now: Millis): void {
    const spans = this.#unexpired(slot, now) ?? this.#track(slot);
    const from = SPAN * Math.floor(earliest / SPAN);
    const span = spans.find((each) => each.from === from);
    if (span !== undefined) span.count += 1;
    else if (spans.length < MAX_SPANS) spans.push({ from, count: 1 });
  }

  #track(slot: ClientSlot): PlacesInSpan[] {
    for (const oldest of this.#spans.keys()) {
      if (this.#spans.size < MAX_CLIENTS) break;
      this.#spans.delete(oldest);
    }
    const spans: PlacesInSpan[] = [];
    this.#spans.set(slot, spans);
    return spans;
  }

  #unexpired(slot: ClientSlot, now: Millis): PlacesInSpan[] | undefined {
    const spans = this.#spans.get(slot);
    if (spans?.some((span) => isOver(span, now)) !== true) return spans;
    const left = spans.filter((span) => !isOver(span, now));
    if (left.length > 0) {
      this.#spans.set(slot, left);
      return left;
    }
    this.#spans.delete(slot);
    return undefined;
  }
}

function isDue({ from, count }: PlacesInSpan, now: Millis): boolean {
  return count > 0 && (isReturningOnTime(from, now) || isReturningOnTime(from + SPAN, now));
}

function isOver({ from, count }: PlacesInSpan, now: Millis): boolean {
  return count === 0 || now > from + SPAN + RETURN_LATE_BY;
}
