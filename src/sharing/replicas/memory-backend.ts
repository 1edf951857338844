import { limitId } from '../../core/limits/limit-ref.ts';
import type { LimitRef } from '../../core/limits/limit-ref.ts';
import { LocalMeter } from '../../core/limits/local-meter.ts';
import type { RateSettings } from '../../core/rate/rate-state.ts';
import type { Millis } from '../../core/scalars.ts';
import { MAX_RETENTION } from './limit-retention.ts';
import { ReplicaSharedLimit } from './replica-shared-limit.ts';
import type { AccountStore } from './account-store.ts';
import type { LeaseResponse, LeaseRequest } from './replica-protocol.ts';

interface StoredLimit {
  readonly limit: ReplicaSharedLimit;
  readonly accounts: MemoryAccountStore;
  /** Until when it is kept, by the backend's clock. */
  keptUntil: Millis;
}

/** A backend in memory, for simulations: it runs the code that is translated into the script of Redis. */
export class MemoryBackend {
  readonly #limits = new Map<string, StoredLimit>();
  #random = 0;

  /** @param time the backend's clock */
  serve(ref: LimitRef, settings: RateSettings, request: LeaseRequest, time: Millis): LeaseResponse {
    this.#random = request.random;
    const name = limitId(ref);
    let stored = this.#limits.get(name);
    const isNew = stored === undefined || stored.keptUntil <= time;
    if (stored === undefined || isNew) {
      const limit = new ReplicaSharedLimit(new LocalMeter(settings, () => this.#random));
      stored = { limit, accounts: new MemoryAccountStore(), keptUntil: time };
      this.#limits.set(name, stored);
    }
    const { limit, accounts } = stored;
    const now = limit.now(time);
    const response = limit.serve(request, accounts, now, isNew);
    stored.keptUntil = time + (ref.key === '' ? MAX_RETENTION : limit.retention(settings, now));
    return response;
  }

  /** Forgets all limits, as a restart without persistence does. */
  clear(): void {
    this.#limits.clear();
  }
}

/** A report that a group waits at a replica counts until the end of the next window. */
export const WAITING_WINDOW: Millis = 400;
/** The same for one that is to return: for such ones, a replica calls once a second. */
export const RETURNING_WINDOW: Millis = 1500;

/** The replicas that have reported a group in this window of time or in the one before. */
class RecentMembers {
  readonly #windowLength: Millis;
  readonly #byWindow = new Map<number, Map<string, Set<string>>>();

  constructor(windowLength: Millis) {
    this.#windowLength = windowLength;
  }

  /** Returns their number. */
  record(group: string, replicaId: string, now: Millis): number {
    const window = this.#windowAt(now);
    for (const old of this.#byWindow.keys()) if (old < window - 1) this.#byWindow.delete(old);
    const groups = this.#byWindow.get(window) ?? new Map<string, Set<string>>();
    this.#byWindow.set(window, groups);
    const replicas = groups.get(group) ?? new Set();
    groups.set(group, replicas.add(replicaId));
    return this.members(group, now).size;
  }

  members(group: string, now: Millis): ReadonlySet<string> {
    const window = this.#windowAt(now);
    const [before, current] = [window - 1, window].map((number) => this.#byWindow.get(number)?.get(group) ?? []);
    return new Set([...(before ?? []), ...(current ?? [])]);
  }

  #windowAt(now: Millis): number {
    return Math.floor(now / this.#windowLength);
  }
}

export class MemoryAccountStore implements AccountStore {
  readonly #accounts = new Map<string, { readonly numbers: readonly number[]; readonly calledAt: Millis }>();
  readonly #waiting = new RecentMembers(WAITING_WINDOW);
  readonly #returning = new RecentMembers(RETURNING_WINDOW);

  readAccount(replicaId: string): readonly number[] | undefined {
    return this.#accounts.get(replicaId)?.numbers;
  }

  writeAccount(replicaId: string, numbers: readonly number[], now: Millis): void {
    this.#accounts.delete(replicaId); // keeps the accounts in the order of their last calls
    this.#accounts.set(replicaId, { numbers, calledAt: now });
  }

  deleteAccount(replicaId: string): void {
    this.#accounts.delete(replicaId);
  }

  silentSince(before: Millis, max: number): readonly string[] {
    const silent: string[] = [];
    for (const [replicaId, { calledAt }] of this.#accounts) {
      if (calledAt >= before || silent.length === max) break;
      silent.push(replicaId);
    }
    return silent;
  }

  countAccounts(): number {
    return this.#accounts.size;
  }

  recordWaiting(group: string, replicaId: string, now: Millis): number {
    return this.#waiting.record(group, replicaId, now);
  }

  recordReturning(group: string, replicaId: string, now: Millis): number {
    return this.#returning.record(group, replicaId, now);
  }

  waitsElsewhere(group: string, replicaId: string, now: Millis): boolean {
    const members = this.#waiting.members(group, now);
    return members.size > (members.has(replicaId) ? 1 : 0);
  }
}
