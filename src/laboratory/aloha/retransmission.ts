import type { BackOffStrategy } from '../../core/backoff/strategies.ts';
import { makeBackOff } from '../../core/backoff/strategies.ts';
import type { Random } from '../../core/scalars.ts';

/** When a station that collided sends again. */
export interface Retransmission {
  readonly name: string;

  /**
   * @param collisions of this packet before this one
   * @param memory what the last call returned; 0 at first
   * @returns slots until the next attempt, ≥ 1: 1 is the next slot; undefined if the packet is given up
   */
  next(
    collisions: number,
    memory: number,
    random: Random,
  ): { readonly slots: number; readonly memory: number } | undefined;
}

/**
 * A strategy of the proxy on a channel whose slot is a millisecond. The wait begins when the slot of the collision has ended, and
 * the next attempt is in the first slot that begins after it.
 */
export function retransmitByStrategy(strategy: BackOffStrategy, name: string = strategy.name): Retransmission {
  return {
    name,
    next(collisions, memory, random) {
      const step = strategy.next(collisions, memory, random);
      return step === undefined ? undefined : { slots: 1 + Math.ceil(step.delay), memory: step.memory };
    },
  };
}

/**
 * Lam's procedure of 1975: within 10 slots of the first collision, 100 of the second, 200 of each after it. His K(0) = 1 is that of
 * a new packet.
 */
export const RCP: readonly number[] = [10, 100, 200];

/**
 * The strategy `table`: a packet goes in one of the next K slots after a collision, the first K after the first; the last is
 * repeated. Slots count from that of the collision, as Lam counts them: 1 is the very next.
 * @param slot length of one of its slots, in the channel's
 * @throws BackOffOptionError for an invalid table
 */
export function retransmitByTable(table: readonly number[], slot = 1): Retransmission {
  const strategy = makeBackOff({ strategy: 'table', table, slot });
  return {
    name: `table ${table.join(',')}`,
    next(collisions, memory, random) {
      const step = strategy.next(collisions, memory, random);
      return step === undefined ? undefined : { slots: Math.max(1, Math.ceil(step.delay)), memory };
    },
  };
}

/** In each slot with equal probability p = 2/(K + 1), which Lam's chain assumes: as many slots on average as uniform on K. */
export function retransmitWithProbability(spread: number): Retransmission {
  const retry = Math.min(1, 2 / (spread + 1));
  const scale = 1 / Math.log1p(-retry);
  return {
    name: `chance 2/${spread + 1}`,
    next: (_, memory, random) => ({ slots: retry === 1 ? 1 : 1 + Math.floor(Math.log(1 - random()) * scale), memory }),
  };
}
