import type { EventSink } from '../events/proxy-events.ts';
import { trackPlaces } from '../limits/limit-places.ts';
import type { Limit } from '../limits/limit.ts';
import type { Millis } from '../scalars.ts';
import type { GateStore } from './gate-store.ts';

/** Advances a limit to `now`, and emits an event if its state has changed. A change of the unit of its costs ends what earlier ones delay. */
export function advanceLimit(store: GateStore, limit: Limit, emit: EventSink, now: Millis): void {
  const { unit } = limit.meter;
  limit.meter.advance(now, limit.queue.size > 0);
  if (limit.meter.unit !== unit) limit.forgiveCosts();
  trackPlaces(limit, store);
  if (!limit.meter.awaitsPlace(now)) limit.placeFreeAt = now;
  const change = limit.takeStateChange(now);
  if (change !== undefined) emit(change);
}
