import type { ClientSlot } from '../../core/admission/client-allowance.ts';
import type { ClientState } from '../../core/events/proxy-events.ts';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import type { ClientTable } from './client-table.ts';

/** How much trouble a client is in, most first: its group, and its place there. */
export interface Rank {
  readonly group: number;
  readonly value: number;
  readonly slot: ClientSlot;
}

export interface ClientQuery {
  readonly state?: ClientState | undefined;
  /** A part of its key, in any case. */
  readonly search?: string | undefined;
  readonly upstream?: string | undefined;
  /** Those that come after this one. */
  readonly after?: Rank | undefined;
  /** So many of them at most. */
  readonly limit: number;
}

const GROUPS: readonly ClientState[] = ['held', 'backoff', 'cooldown', 'restoring', 'normal'];

/**
 * The clients in most trouble, without sorting all: those told to wait first, the longest before the others; then those
 * cut, the lowest allowance first; then the normal, by what they ask for. Goes on in steps, so that nothing else waits
 * for a million of them. Who is in trouble is known without looking at the others.
 */
export class ClientSearch {
  readonly #table: ClientTable;
  readonly #query: ClientQuery;
  readonly #now: Millis;
  /** In order. */
  readonly #found: Rank[] = [];
  readonly #part: string | undefined;
  #pass: 'troubled' | 'normal' | 'over' = 'troubled';
  #next: ClientSlot = 0;
  #matching = 0;

  constructor(table: ClientTable, query: ClientQuery, now: Millis) {
    this.#table = table;
    this.#query = query;
    this.#now = now;
    this.#part = query.search?.toLowerCase();
  }

  /** Looks at so many more slots. Returns whether there are more. */
  step(most: number): boolean {
    const until = Math.min(this.#table.slots, this.#next + most);
    const isNormal = this.#pass === 'normal';
    for (; this.#next < until; this.#next += 1) {
      if (this.#table.wasNormal(this.#next) === isNormal) this.#consider(this.#next);
    }
    if (this.#next < this.#table.slots) return true;
    this.#pass = this.#pass === 'troubled' && this.#needsNormal ? 'normal' : 'over';
    this.#next = 0;
    return this.#pass !== 'over';
  }

  /** The whole search, at once. @param most slots that are looked at beyond those in trouble */
  run(most = Number.POSITIVE_INFINITY): this {
    while (this.#pass === 'troubled') this.step(Number.POSITIVE_INFINITY);
    if (this.#pass === 'normal') this.step(most);
    return this;
  }

  get found(): readonly Rank[] {
    return this.#found;
  }

  /** How many match in all. */
  get matching(): number {
    return this.#isUnfiltered && this.#query.state === undefined ? this.#table.tracked : this.#matching;
  }

  get #isUnfiltered(): boolean {
    return this.#part === undefined && this.#query.upstream === undefined;
  }

  get #needsNormal(): boolean {
    const { state, limit } = this.#query;
    if (state !== undefined) return state === 'normal';
    return !this.#isUnfiltered || this.#found.length < limit;
  }

  #consider(slot: ClientSlot): void {
    const state = this.#table.stateAt(slot, this.#now);
    if (state === 'normal' && this.#pass === 'troubled') return; // it has become so just now: its turn comes
    if (this.#query.state !== undefined && state !== this.#query.state) return;
    if (!this.#isUnfiltered && !this.#fits(slot)) return;
    this.#matching += 1;
    const group = GROUPS.indexOf(state);
    const rank: Rank = { group, value: this.#valueOf(slot, state), slot };
    const { after, limit } = this.#query;
    if (after !== undefined && !isBefore(after, rank)) return;
    const worst = this.#found.at(-1);
    if (this.#found.length === limit && worst !== undefined && !isBefore(rank, worst)) return;
    let place = this.#found.length;
    for (let each = this.#found[place - 1]; each !== undefined && isBefore(rank, each); ) {
      place -= 1;
      each = this.#found[place - 1];
    }
    this.#found.splice(place, 0, rank);
    if (this.#found.length > limit) this.#found.pop();
  }

  #valueOf(slot: ClientSlot, state: ClientState): number {
    if (state === 'held') return -this.#table.heldUntil(slot);
    if (state === 'normal') return -this.#table.demand(slot, this.#now);
    return this.#table.allowance(slot, this.#now);
  }

  #fits(slot: ClientSlot): boolean {
    const [upstream, client] = this.#table.nameOf(slot);
    if (this.#query.upstream !== undefined && upstream !== this.#query.upstream) return false;
    return this.#part === undefined || client.toLowerCase().includes(this.#part);
  }
}

export function isBefore(a: Rank, b: Rank): boolean {
  if (a.group !== b.group) return a.group < b.group;
  if (a.value !== b.value) return a.value < b.value;
  return a.slot < b.slot;
}
