import type { ClientSlot } from '../../core/admission/client-allowance.ts';
import { allowanceState } from '../../core/admission/client-allowance.ts';
import type { ClientState } from '../../core/events/event-labels.ts';
import type { EventSink } from '../../core/events/proxy-events.ts';
import type { Millis } from '../../core/scalars.ts';
import type { ClientEviction } from './client-eviction.ts';
import type { ClientRecords } from './client-records.ts';

const STATES = ['normal', 'held', 'backoff', 'cooldown', 'restoring'] as const satisfies readonly ClientState[];
/** The number of `normal` in the records. */
export const NORMAL = 0;
export const HELD = STATES.indexOf('held');

/** The state of each client as it was updated last, and the number of clients in each state. */
export class ClientStates {
  readonly counts: Record<ClientState, number> = { normal: 0, held: 0, backoff: 0, cooldown: 0, restoring: 0 };
  readonly #records: ClientRecords;
  readonly #eviction: ClientEviction;
  readonly #overflowSlot: ClientSlot;
  readonly #listen: EventSink;

  /** @param overflowSlot the slot of no single client: its state is neither counted nor reported */
  constructor(records: ClientRecords, eviction: ClientEviction, overflowSlot: ClientSlot, listen: EventSink) {
    this.#records = records;
    this.#eviction = eviction;
    this.#overflowSlot = overflowSlot;
    this.#listen = listen;
  }

  get(slot: ClientSlot): ClientState {
    return STATES[this.#records.state(slot)] ?? 'normal';
  }

  /** Records and reports a change of state, and moves the client in the order of eviction. */
  update(slot: ClientSlot, now: Millis): void {
    const from = this.get(slot);
    const to =
      this.#records.get(slot, 'heldUntil') > now
        ? 'held'
        : allowanceState(this.#records.get(slot, 'refusedAt'), this.#records.isStillRefused(slot), now);
    if (from === to) return;
    const wasEvictable = this.#eviction.remove(slot);
    this.#records.setState(slot, STATES.indexOf(to));
    if (wasEvictable) this.#eviction.add(slot);
    if (slot === this.#overflowSlot) return;
    this.counts[from] -= 1;
    this.counts[to] += 1;
    const [upstream, client] = this.#records.nameOf(slot);
    this.#listen({ type: 'client-state', upstream, client, from, to });
  }

  /** Removes the next client to evict from the counts, and returns its slot; undefined if all are in use. */
  evictNext(now: Millis): ClientSlot | undefined {
    for (let slot = this.#eviction.firstTroubled; slot !== undefined; slot = this.#eviction.firstTroubled) {
      this.update(slot, now);
      if (this.#records.state(slot) !== NORMAL) break;
    }
    const calm = this.#eviction.firstNormal;
    const slot = calm ?? this.#eviction.firstTroubled;
    if (slot === undefined) return undefined;
    this.#eviction.remove(slot);
    this.counts[this.get(slot)] -= 1;
    this.#listen({ type: 'client-evicted', cause: calm === undefined ? 'troubled' : 'calm' });
    return slot;
  }
}
