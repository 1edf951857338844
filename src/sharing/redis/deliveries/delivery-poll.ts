import type { DeliveryTotals } from '../../../core/delivery/delivery-store.ts';
import type { ResourceBound } from '../../../core/overload/resource-bound.ts';
import type { Millis } from '../../../core/scalars.ts';
import type { Delivery } from '../../../core/delivery/delivery.ts';
import type { DeliveryCommands } from './delivery-commands.ts';
import { decodeFields } from './delivery-fields.ts';
import { LASTING_STATES, STORED_STATES, type StoredState } from './delivery-script-parts.ts';

export interface DeliveryBounds {
  readonly maxCount: number;
  readonly maxBytes: number;
  readonly maxEvents: number;
}

export interface DeliveryPollParts extends DeliveryBounds {
  readonly commands: DeliveryCommands;
  readonly wallClock: () => Millis;
  /** Calls `run` once after this time. @returns a function that cancels it */
  readonly schedule: (delay: Millis, run: () => void) => () => void;
  /** A delivery that waits for longer ends. */
  readonly maxAge: () => Millis;
  /** These have waited for longer. */
  readonly onTooOld: (deliveries: readonly Delivery[], since: Millis) => Promise<void>;
  /** Deliveries are due that no replica has claimed. */
  readonly onDue: () => void;
}

/** So late may a replica be that sends what another one has accepted. */
const INTERVAL: Millis = 1000;
/** While more is over than one step removes. */
const STEP_INTERVAL: Millis = 50;

interface Figures {
  readonly sending: number;
  readonly oldestAt: Millis | undefined;
  readonly events: number;
  readonly counts: Readonly<Record<StoredState, number>>;
  readonly bytes: Readonly<Record<StoredState, number>>;
}

const NO_COUNTS = { open: 0, dead: 0, unknown: 0, delivered: 0, canceled: 0 };

/** What Redis has in all, as last read, and what is due or over there. One of all replicas finds what is due after a replica has ended. */
export class DeliveryPoll {
  readonly #parts: DeliveryPollParts;
  #figures: Figures = { sending: 0, oldestAt: undefined, events: 0, counts: NO_COUNTS, bytes: NO_COUNTS };
  #cancelNext: (() => void) | undefined;
  #isClosed = false;
  #refused = { count: 0, bytes: 0, events: 0 };

  constructor(parts: DeliveryPollParts) {
    this.#parts = parts;
  }

  get totals(): DeliveryTotals {
    const { sending, oldestAt, counts, bytes } = this.#figures;
    const { open, ...ends } = counts;
    return {
      counts: { waiting: Math.max(0, open - sending), sending, ...ends },
      bytes: sum(bytes, STORED_STATES),
      oldestAt,
    };
  }

  get bounds(): readonly ResourceBound[] {
    const { maxCount, maxBytes, maxEvents } = this.#parts;
    const { counts, bytes, events } = this.#figures;
    const refused = this.#refused;
    return [
      { name: 'deliveries', used: sum(counts, LASTING_STATES) / maxCount, reached: refused.count },
      { name: 'delivery_bytes', used: sum(bytes, LASTING_STATES) / maxBytes, reached: refused.bytes },
      { name: 'delivery_events', used: events / maxEvents, reached: refused.events },
    ];
  }

  /** A bound has refused an addition of this replica, or made room for it. */
  onReached(bound: 'count' | 'bytes' | 'events'): void {
    this.#refused = { ...this.#refused, [bound]: this.#refused[bound] + 1 };
  }

  /** Begins to poll, if it does not yet. */
  start(): void {
    if (this.#cancelNext === undefined && !this.#isClosed) this.#scheduleNext(0);
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelNext?.();
  }

  /** Resolves once Redis has responded, or has not in time. */
  poll(): Promise<void> {
    return new Promise((resolve) => {
      this.#run(() => resolve());
    });
  }

  #scheduleNext(delay: Millis): void {
    this.#cancelNext = this.#parts.schedule(delay, () => {
      this.#run((hasMore) => {
        if (!this.#isClosed) this.#scheduleNext(hasMore ? STEP_INTERVAL : INTERVAL);
      });
    });
  }

  #run(onDone: (hasMore: boolean) => void): void {
    const { commands, wallClock, maxAge, onTooOld, onDue } = this.#parts;
    const now = wallClock();
    const since = now - maxAge();
    const args = [String(now), since === Number.NEGATIVE_INFINITY ? '-inf' : String(since)];
    commands.run({ script: 'tidegatePollDeliveries', args }, (result) => {
      const [found, old] = readPolled(result.kind === 'lost' ? undefined : result.response);
      if (found === undefined) return onDone(false);
      const [hasMore, isDue, sending, oldestAt, events, ...figures] = found;
      const each = (offset: number): Record<StoredState, number> => {
        const [open = 0, dead = 0, unknown = 0, delivered = 0, canceled = 0] = figures
          .filter((_, i) => i % 2 === offset)
          .map(Number);
        return { open, dead, unknown, delivered, canceled };
      };
      this.#figures = {
        ...{ sending: Number(sending), events: Number(events), counts: each(0), bytes: each(1) },
        oldestAt: oldestAt === '' ? undefined : Number(oldestAt),
      };
      if (isDue === '1') onDue();
      if (old.length === 0) onDone(hasMore === '1');
      else void onTooOld(old, since).then(() => onDone(hasMore === '1'));
    });
  }
}

/** The figures, and the deliveries that have waited too long. Undefined if it is something else. */
function readPolled(reply: unknown): readonly [figures: readonly string[] | undefined, old: readonly Delivery[]] {
  const [figures, old] = Array.isArray(reply) ? (reply as readonly unknown[]) : [];
  if (!Array.isArray(figures) || !Array.isArray(old)) return [undefined, []];
  const deliveries = (old as readonly (readonly unknown[])[]).flatMap(
    ([id, fields]) => decodeFields(String(id), fields) ?? [],
  );
  return [figures.map(String), deliveries];
}

function sum(figures: Readonly<Record<StoredState, number>>, states: readonly StoredState[]): number {
  return states.reduce((total, state) => total + figures[state], 0);
}
