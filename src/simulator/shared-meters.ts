import type { MemoryStoreOptions } from '../store/memory-store-options.ts';
import type { LimitRef } from '../core/limits/limit-ref.ts';
import type { Meter } from '../core/limits/meter.ts';
import { LocalMeter } from '../core/limits/local-meter.ts';

/** Returns the same meter for the same limit to every store, for simulated replicas that share limits. */
export function createSharedMeters(): NonNullable<MemoryStoreOptions['makeMeter']> {
  const meters = new Map<string, Meter>();
  return ({ upstream, nested, scope, key }: LimitRef, rate, random) => {
    const name = JSON.stringify([upstream, nested, scope, key]);
    const meter = meters.get(name) ?? new LocalMeter(rate, random);
    meters.set(name, meter);
    return meter;
  };
}
