import type { ClientSlot } from '../../core/admission/client-allowance.ts';
import type { ClientState } from '../../core/events/event-labels.ts';
import type { Millis } from '../../core/scalars.ts';
import type { ClientTable } from './client-table.ts';

/** The rank of a client in a search: the most troubled first. `value` orders the clients of a group. */
export interface ClientRank {
  readonly group: number;
  readonly value: number;
  readonly slot: ClientSlot;
}

export interface ClientQuery {
  readonly state?: ClientState | undefined;
  /** A part of the client's key or name, case-insensitive. */
  readonly search?: string | undefined;
  readonly upstream?: string | undefined;
  /** Only the client with this key. */
  readonly key?: string | undefined;
  /** Only clients ranked after this one. */
  readonly after?: ClientRank | undefined;
  /** The maximum number of clients to find. */
  readonly limit: number;
}

/** The names of clients in the configuration, by the client's key. */
export interface ConfiguredNames {
  of(client: string): string | undefined;
}

const NO_NAMES: ConfiguredNames = { of: () => undefined };

/** From the most restricted state on. */
export const CLIENT_STATE_RANKS: readonly ClientState[] = ['held', 'backoff', 'cooldown', 'restoring', 'normal'];

/**
 * Finds the most troubled clients, without sorting all: held ones first, those held longest before the others; then reduced
 * ones, the lowest allowance first; then normal ones, the highest demand first. Runs in steps, so that a search of a million
 * clients does not delay requests. The troubled ones are found without reading the records of the others.
 */
export class ClientSearch {
  readonly #table: ClientTable;
  readonly #query: ClientQuery;
  readonly #now: Millis;
  readonly #names: ConfiguredNames;
  /** In order of rank. */
  readonly #found: ClientRank[] = [];
  readonly #keyPart: string | undefined;
  #pass: 'troubled' | 'normal' | 'over' = 'troubled';
  #next: ClientSlot = 0;
  #matching = 0;

  /** @param names finds clients by their configured names too */
  constructor(table: ClientTable, query: ClientQuery, now: Millis, names: ConfiguredNames = NO_NAMES) {
    this.#names = names;
    this.#table = table;
    this.#query = query;
    this.#now = now;
    this.#keyPart = query.search?.toLowerCase();
  }

  /** Examines `maxSlots` more slots. Returns whether there are more. */
  step(maxSlots: number): boolean {
    const until = Math.min(this.#table.slots, this.#next + maxSlots);
    const isNormal = this.#pass === 'normal';
    for (; this.#next < until; this.#next += 1) {
      if (this.#table.wasNormal(this.#next) === isNormal) this.#consider(this.#next);
    }
    if (this.#next < this.#table.slots) return true;
    this.#pass = this.#pass === 'troubled' && this.#needsNormal ? 'normal' : 'over';
    this.#next = 0;
    return this.#pass !== 'over';
  }

  /** Runs the whole search at once. @param maxSlots the maximum number of slots examined for normal clients */
  run(maxSlots = Number.POSITIVE_INFINITY): this {
    while (this.#pass === 'troubled') this.step(Number.POSITIVE_INFINITY);
    if (this.#pass === 'normal') this.step(maxSlots);
    return this;
  }

  get found(): readonly ClientRank[] {
    return this.#found;
  }

  /** The number of clients that match. */
  get matching(): number {
    return this.#isUnfiltered && this.#query.state === undefined ? this.#table.tracked : this.#matching;
  }

  get #isUnfiltered(): boolean {
    return this.#keyPart === undefined && this.#query.upstream === undefined && this.#query.key === undefined;
  }

  get #needsNormal(): boolean {
    const { state, limit } = this.#query;
    if (state !== undefined) return state === 'normal';
    return !this.#isUnfiltered || this.#found.length < limit;
  }

  #consider(slot: ClientSlot): void {
    const state = this.#table.stateAt(slot, this.#now);
    if (state === 'normal' && this.#pass === 'troubled') return; // it has just become normal: the second pass examines it
    if (this.#query.state !== undefined && state !== this.#query.state) return;
    if (!this.#isUnfiltered && !this.#matchesQuery(slot)) return;
    this.#matching += 1;
    const group = CLIENT_STATE_RANKS.indexOf(state);
    const rank: ClientRank = { group, value: this.#rankValue(slot, state), slot };
    const { after, limit } = this.#query;
    if (after !== undefined && !isRankedBefore(after, rank)) return;
    const worst = this.#found.at(-1);
    if (this.#found.length === limit && worst !== undefined && !isRankedBefore(rank, worst)) return;
    let index = this.#found.length;
    for (let each = this.#found[index - 1]; each !== undefined && isRankedBefore(rank, each); ) {
      index -= 1;
      each = this.#found[index - 1];
    }
    this.#found.splice(index, 0, rank);
    if (this.#found.length > limit) this.#found.pop();
  }

  #rankValue(slot: ClientSlot, state: ClientState): number {
    if (state === 'held') return -this.#table.heldUntil(slot);
    if (state === 'normal') return -this.#table.demand(slot, this.#now);
    return this.#table.allowance(slot, this.#now);
  }

  #matchesQuery(slot: ClientSlot): boolean {
    const [upstream, client] = this.#table.nameOf(slot);
    if (this.#query.upstream !== undefined && upstream !== this.#query.upstream) return false;
    if (this.#query.key !== undefined && client !== this.#query.key) return false;
    if (this.#keyPart === undefined || client.toLowerCase().includes(this.#keyPart)) return true;
    return this.#names.of(client)?.toLowerCase().includes(this.#keyPart) === true;
  }
}

export function isRankedBefore(a: ClientRank, b: ClientRank): boolean {
  if (a.group !== b.group) return a.group < b.group;
  if (a.value !== b.value) return a.value < b.value;
  return a.slot < b.slot;
}
