import type { LimitRef } from '../core/limits/limit-ref.ts';
import type { Meter } from '../core/limits/meter.ts';
import { LocalMeter } from '../core/limits/meter.ts';
import type { MemoryOptions } from '../store/memory-store.ts';

/** Makes one meter for each limit, whoever asks: stores of one process that know of each other, as in a simulation. */
export function shareMeters(): NonNullable<MemoryOptions['makeMeter']> {
  const meters = new Map<string, Meter>();
  return ({ upstream, nested, scope, key }: LimitRef, rate, random) => {
    const name = JSON.stringify([upstream, nested, scope, key]);
    const meter = meters.get(name) ?? new LocalMeter(rate, random);
    meters.set(name, meter);
    return meter;
  };
}
