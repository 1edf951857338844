import type { Membership } from './membership.ts';
import type { Clock } from './policy/types.ts';
import type { Held } from './state/leasing/leaseholder.ts';
import type { MemoryOptions } from './state/memory.ts';

/** Limits that other processes have a share in, and how they are borrowed here. */
export interface SharedLimits {
  /** For the store. */
  readonly options: Pick<MemoryOptions, 'makeMeter' | 'sharing'>;
  /** The store and its gate are there. */
  wire(held: Held): void;
  close(): void;
}

/** Lent by the primary of several workers. */
export function shareAmongWorkers({ leaseholder }: Membership, clock: Clock): SharedLimits {
  return {
    options: { makeMeter: (ref, rate) => leaseholder.makeMeter(ref, rate), sharing: leaseholder },
    wire: (held) => leaseholder.wire(held, clock.now()),
    close: () => undefined,
  };
}
