import type { Millis } from '../../core/scalars.ts';
import type { WorkerAccount } from './worker-account.ts';
import type { GroupShare, GroupShares } from './worker-protocol.ts';

interface Members {
  readonly waiting: WorkerAccount[];
  readonly returning: WorkerAccount[];
}

interface MutableShares {
  readonly waiting: GroupShare[];
  readonly returning: GroupShare[];
}

export const NO_SHARES: GroupShares = { waiting: [], returning: [] };

/**
 * For each group with demand at several workers, the part of its weight that counts at each, so that its weight is the same as
 * if all its requests were in one place: 1/n at each of n workers where it waits. Where it is only to return, it counts
 * nothing if it waits at another worker, and else 1/n at each of n workers.
 */
export function divideGroupWeights(
  accounts: Iterable<WorkerAccount>,
  now: Millis,
): ReadonlyMap<WorkerAccount, GroupShares> {
  const shares = new Map<WorkerAccount, MutableShares>();
  for (const [group, { waiting, returning }] of membersByGroup(accounts, now)) {
    if (waiting.length + returning.length === 1) continue;
    for (const account of waiting) {
      if (waiting.length > 1) sharesAt(shares, account).waiting.push([group, 1 / waiting.length]);
    }
    for (const account of returning) {
      const share = waiting.length > 0 ? 0 : 1 / returning.length;
      sharesAt(shares, account).returning.push([group, share]);
    }
  }
  return shares;
}

function membersByGroup(accounts: Iterable<WorkerAccount>, now: Millis): ReadonlyMap<string, Members> {
  const byGroup = new Map<string, Members>();
  const membersOf = (group: string): Members => {
    const known = byGroup.get(group) ?? { waiting: [], returning: [] };
    byGroup.set(group, known);
    return known;
  };
  for (const account of accounts) {
    for (const group of account.waitingGroups(now)) membersOf(group).waiting.push(account);
    for (const group of account.returningGroups(now)) {
      const members = membersOf(group);
      // A later report may name it as waiting.
      if (members.waiting.at(-1) !== account) members.returning.push(account);
    }
  }
  return byGroup;
}

function sharesAt(shares: Map<WorkerAccount, MutableShares>, account: WorkerAccount): MutableShares {
  const known = shares.get(account) ?? { waiting: [], returning: [] };
  shares.set(account, known);
  return known;
}
