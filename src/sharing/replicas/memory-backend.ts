import type { LimitRef } from '../../core/limits/limit-ref.ts';
import { LocalMeter } from '../../core/limits/meter.ts';
import type { RateSettings } from '../../core/rate/rate-state.ts';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import { nameOf } from '../protocol/limit-terms.ts';
import { PooledLimit } from './replica-shared-limit.ts';
import type { Shelf } from './account-store.ts';
import type { Answer, Call } from './replica-protocol.ts';

/** A pool in memory, as a simulation has it: what another store keeps by scripts, kept by the same code. */
export class MemoryPool {
  readonly #limits = new Map<string, { readonly limit: PooledLimit; readonly shelf: MemoryShelf }>();
  #chance = 0;

  /** @param time what the store's clock says */
  call(ref: LimitRef, settings: RateSettings, call: Call, time: Millis): Answer {
    this.#chance = call.chance;
    const name = nameOf(ref);
    const known = this.#limits.get(name);
    const kept = known ?? {
      limit: new PooledLimit(new LocalMeter(settings, () => this.#chance)),
      shelf: new MemoryShelf(),
    };
    this.#limits.set(name, kept);
    return kept.limit.serve(call, kept.shelf, kept.limit.now(time), known === undefined);
  }

  /** All is forgotten, as when a store without a disk begins anew. */
  clear(): void {
    this.#limits.clear();
  }
}

/** Where a client was said to wait counts for so long, and half as long again. */
export const WAITS_FOR: Millis = 400;

export class MemoryShelf implements Shelf {
  readonly #accounts = new Map<string, { readonly numbers: readonly number[]; readonly heardAt: Millis }>();
  readonly #waiting = new Map<number, Map<string, Set<string>>>();

  readAccount(holder: string): readonly number[] | undefined {
    return this.#accounts.get(holder)?.numbers;
  }

  keepAccount(holder: string, numbers: readonly number[], now: Millis): void {
    this.#accounts.delete(holder); // in order of when they were heard
    this.#accounts.set(holder, { numbers, heardAt: now });
  }

  dropAccount(holder: string): void {
    this.#accounts.delete(holder);
  }

  silentSince(before: Millis, most: number): readonly string[] {
    const silent: string[] = [];
    for (const [holder, { heardAt }] of this.#accounts) {
      if (heardAt >= before || silent.length === most) break;
      silent.push(holder);
    }
    return silent;
  }

  countAccounts(): number {
    return this.#accounts.size;
  }

  noteWaiting(client: string, holder: string, now: Millis): number {
    const span = Math.floor(now / WAITS_FOR);
    for (const old of this.#waiting.keys()) if (old < span - 1) this.#waiting.delete(old);
    const clients = this.#waiting.get(span) ?? new Map<string, Set<string>>();
    this.#waiting.set(span, clients);
    const holders = clients.get(client) ?? new Set();
    clients.set(client, holders.add(holder));
    return new Set([...holders, ...(this.#waiting.get(span - 1)?.get(client) ?? [])]).size;
  }
}
