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
  #window = Number.NEGATIVE_INFINITY;
  #current = new Map<string, Set<string>>();
  #before: ReadonlyMap<string, ReadonlySet<string>> = new Map();

  constructor(windowLength: Millis) {
    this.#windowLength = windowLength;
  }

  /** Returns their number. */
  record(group: string, replicaId: string, now: Millis): number {
    this.#roll(now);
    const replicas = this.#current.get(group) ?? new Set();
    this.#current.set(group, replicas.add(replicaId));
    return this.count(group, now);
  }

  count(group: string, now: Millis): number {
    this.#roll(now);
    const [current, before] = [this.#current.get(group), this.#before.get(group)];
    let count = before?.size ?? 0;
    for (const replica of current ?? []) if (before?.has(replica) !== true) count += 1;
    return count;
  }

  has(group: string, replicaId: string, now: Millis): boolean {
    this.#roll(now);
    return this.#current.get(group)?.has(replicaId) === true || this.#before.get(group)?.has(replicaId) === true;
  }

  #roll(now: Millis): void {
    const window = Math.floor(now / this.#windowLength);
    if (window === this.#window) return;
    this.#before = window === this.#window + 1 ? this.#current : new Map<string, Set<string>>();
    this.#current = new Map();
    this.#window = window;
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
    return this.#waiting.count(group, now) > (this.#waiting.has(group, replicaId, now) ? 1 : 0);
  }
}
