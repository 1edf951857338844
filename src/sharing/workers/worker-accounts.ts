import type { Millis } from '../../core/scalars.ts';
import type { WorkerId } from './worker-account.ts';
import { WorkerAccount } from './worker-account.ts';
import { divideGroupWeights, NO_SHARES } from './group-shares.ts';
import type { GroupShares, TokenDemand } from './worker-protocol.ts';

/** The workers' accounts of one limit, served by weight as `FairQueue` serves clients. */
export class WorkerAccounts {
  readonly #accounts = new Map<WorkerId, WorkerAccount>();
  /** The tag of the account that was served last. */
  #virtualTime = 0;
  #shares: ReadonlyMap<WorkerAccount, GroupShares> = new Map();
  /** Until when they apply, unless a worker reports its groups before. */
  #sharesValidUntil = Number.NEGATIVE_INFINITY;

  [Symbol.iterator](): IterableIterator<WorkerAccount> {
    return this.#accounts.values();
  }

  get(workerId: WorkerId): WorkerAccount | undefined {
    return this.#accounts.get(workerId);
  }

  /** @param epoch the epoch that a new worker is assumed to know */
  open(workerId: WorkerId, epoch: number, now: Millis): WorkerAccount {
    let account = this.#accounts.get(workerId);
    if (account === undefined) {
      account = new WorkerAccount(workerId, epoch, now);
      this.#accounts.set(workerId, account);
    }
    return account;
  }

  close(workerId: WorkerId): void {
    this.#accounts.delete(workerId);
    this.#sharesValidUntil = Number.NEGATIVE_INFINITY;
  }

  /** Tokens requested by all workers. */
  get want(): number {
    let want = 0;
    for (const account of this) want += account.want;
    return want;
  }

  /** The weight of the workers where requests wait. */
  get activeWeight(): number {
    let weight = 0;
    for (const account of this) weight += account.activeWeight;
    return weight;
  }

  /** The weight of all clients that wait or are to return. */
  demandWeight(now: Millis): number {
    let weight = 0;
    for (const account of this) weight += account.demandWeight(now);
    return weight;
  }

  /** See `divideGroupWeights`. Computed only when the groups have changed. */
  groupShares(account: WorkerAccount, now: Millis): GroupShares {
    if (now >= this.#sharesValidUntil) {
      this.#shares = divideGroupWeights(this, now);
      this.#sharesValidUntil = Number.POSITIVE_INFINITY;
      for (const each of this) this.#sharesValidUntil = Math.min(this.#sharesValidUntil, each.groupsValidUntil(now));
    }
    return this.#shares.get(account) ?? NO_SHARES;
  }

  /** The next account to serve; undefined if none needs a token. */
  nextToServe(): WorkerAccount | undefined {
    let next: WorkerAccount | undefined;
    for (const account of this) {
      if (account.want > 0 && (next === undefined || account.tag < next.tag)) next = account;
    }
    return next;
  }

  /** Grants a token, and ends the account's turn. */
  grant(account: WorkerAccount, slot: Millis): void {
    account.grant(slot);
    this.#virtualTime = Math.max(this.#virtualTime, account.tag);
    account.tag += 1 / account.weight;
  }

  updateDemand({ want, received, weight, groups }: TokenDemand, account: WorkerAccount, now: Millis): void {
    const inTransit = account.totalGranted - received;
    const wasIdle = account.want === 0;
    account.want = Math.max(0, want - inTransit);
    account.recordDemandWeight(weight, now);
    if (weight > 0) {
      // The service ahead of its turn is kept, in units of the new weight.
      account.tag = this.#virtualTime + (Math.max(0, account.tag - this.#virtualTime) * account.weight) / weight;
      account.weight = weight;
    }
    if (wasIdle) account.tag = Math.max(account.tag, this.#virtualTime + 1 / account.weight);
    if (groups.waiting === undefined && groups.returning === undefined) return;
    account.recordGroups(groups, now);
    this.#sharesValidUntil = Number.NEGATIVE_INFINITY;
  }
}
