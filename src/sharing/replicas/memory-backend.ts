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

/** A report that a client waits at a replica counts until the end of the next window. */
export const WAITING_WINDOW: Millis = 400;

export class MemoryAccountStore implements AccountStore {
  readonly #accounts = new Map<string, { readonly numbers: readonly number[]; readonly calledAt: Millis }>();
  readonly #waitingByWindow = new Map<number, Map<string, Set<string>>>();

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

  recordWaiting(client: string, replicaId: string, now: Millis): number {
    const window = Math.floor(now / WAITING_WINDOW);
    for (const old of this.#waitingByWindow.keys()) if (old < window - 1) this.#waitingByWindow.delete(old);
    const clients = this.#waitingByWindow.get(window) ?? new Map<string, Set<string>>();
    this.#waitingByWindow.set(window, clients);
    const replicas = clients.get(client) ?? new Set();
    clients.set(client, replicas.add(replicaId));
    return new Set([...replicas, ...(this.#waitingByWindow.get(window - 1)?.get(client) ?? [])]).size;
  }
}
