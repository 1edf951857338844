import type { LimitRef } from '../policy/limit-ref.ts';
import type { Meter } from '../policy/meter.ts';
import { LocalMeter } from '../policy/meter.ts';
import type { MemoryOptions } from './memory.ts';

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
