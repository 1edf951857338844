import { AwaitedReturns } from '../../core/limits/awaited-returns.ts';
import type { Limit } from '../../core/limits/limit.ts';
import { LimitDemand } from '../../core/limits/limit-demand.ts';
import type { Millis } from '../../core/scalars.ts';

/** The maximum number of groups of each kind that one report names. */
const MAX_REPORTED = 32;

/**
 * Some of the groups that a member has demand of. A group is a client, or the clients of one address, which have the turns of
 * one. Each list is absent if it was reported lately.
 */
export interface DemandSample {
  /** Groups that wait there, at the limit or at limits nested in it. */
  readonly waiting?: readonly string[];
  /** Groups of refused clients that are to return there. None of their requests waits there. */
  readonly returning?: readonly string[];
}

/**
 * From now on, the clients that wait for a limit, and refused ones that are to return, count as demand there. A limit of one
 * client is not divided by clients, so those that are to return do not count.
 * @param onFirstReturn called when one is to return and none was before
 */
export function countDemand(limit: Limit, onFirstReturn: () => void): void {
  limit.demand = new LimitDemand(limit.ref.scope === 'client' ? undefined : new AwaitedReturns(onFirstReturn));
}

/** Decides which groups of one limit a report names. */
export class DemandSampler {
  readonly #waitingInterval: Millis;
  readonly #returningInterval: Millis;
  #waitingAt: Millis = Number.NEGATIVE_INFINITY;
  #returningAt: Millis = Number.NEGATIVE_INFINITY;

  constructor(intervals: { readonly waiting: Millis; readonly returning: Millis }) {
    this.#waitingInterval = intervals.waiting;
    this.#returningInterval = intervals.returning;
  }

  /** Whether the groups that wait were reported at least this long ago. */
  isOlderThan(age: Millis, now: Millis): boolean {
    return now - this.#waitingAt >= age;
  }

  /** @param isWaiting whether to name groups that wait, if they are due */
  take({ demand }: Limit, isWaiting: boolean, now: Millis): DemandSample {
    const hasWaiting = isWaiting && now - this.#waitingAt >= this.#waitingInterval;
    const hasReturning = now - this.#returningAt >= this.#returningInterval;
    if (hasWaiting) this.#waitingAt = now;
    if (hasReturning) this.#returningAt = now;
    return {
      ...(hasWaiting ? { waiting: demand?.sampleWaiting(MAX_REPORTED) ?? [] } : {}),
      ...(hasReturning ? { returning: demand?.returns?.sample(MAX_REPORTED, now) ?? [] } : {}),
    };
  }
}

/**
 * The part of a group's weight that counts at one member, so that in all it counts once: 1/n where it waits, if it waits at n
 * members. A group that is to return to n members and waits at none counts 1/n at each; one that waits elsewhere counts only there.
 * @param members the number of members where it counts; 0 if it counts only elsewhere
 */
function shareOf(members: number): number {
  return members === 0 ? 0 : 1 / members;
}

/** @param members for each of the groups: see `shareOf` */
export function sharesOf(groups: readonly string[], members: readonly number[]): ReadonlyMap<string, number> {
  const shares = new Map<string, number>();
  for (const [index, group] of groups.entries()) {
    const share = shareOf(members[index] ?? 1);
    if (share !== 1) shares.set(group, share);
  }
  return shares;
}
