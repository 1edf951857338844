import type { Random } from '../core/scalars.ts';
import type { LimitRef } from '../core/limits/limit-ref.ts';
import { Limit } from '../core/limits/limit.ts';
import { LocalMeter } from '../core/limits/local-meter.ts';
import type { RateSettings } from '../core/rate/rate-state.ts';

const UNLIMITED: RateSettings = {
  initialRate: undefined,
  maxRate: Number.POSITIVE_INFINITY,
  minRate: 1,
  cooldown: 0,
};

/** A queue that waits for a connection alone: a limit without a rate. */
export function makeConnectionQueue(ref: LimitRef, random: Random): Limit {
  return new Limit(ref, new LocalMeter(UNLIMITED, random));
}
