import { limitId } from '../../core/limits/limit-ref.ts';
import type { LimitRef } from '../../core/limits/limit-ref.ts';
import { LocalMeter } from '../../core/limits/local-meter.ts';
import type { RateSettings } from '../../core/rate/rate-state.ts';
import type { Millis } from '../../core/scalars.ts';
import { ReplicaSharedLimit } from './replica-shared-limit.ts';
import type { AccountStore } from './account-store.ts';
import type { LeaseResponse, LeaseRequest } from './replica-protocol.ts';

/** A backend in memory, for simulations: it runs the code that is translated into the script of Redis. */
export class MemoryBackend {
  readonly #limits = new Map<string, { readonly limit: ReplicaSharedLimit; readonly accounts: MemoryAccountStore }>();
  #random = 0;

  /** @param time the backend's clock */
  serve(ref: LimitRef, settings: RateSettings, request: LeaseRequest, time: Millis): LeaseResponse {
    this.#random = request.random;
    const name = limitId(ref);
    const known = this.#limits.get(name);
    const stored = known ?? {
      limit: new ReplicaSharedLimit(new LocalMeter(settings, () => this.#random)),
      accounts: new MemoryAccountStore(),
    };
    this.#limits.set(name, stored);
    return stored.limit.serve(request, stored.accounts, stored.limit.now(time), known === undefined);
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
