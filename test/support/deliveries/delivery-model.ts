/** What a store of deliveries does, in the simplest way: arrays that are searched from the beginning. */
import type { DeliveryEnd } from '../../../src/core/delivery/delivery.ts';

export interface ModelDelivery {
  readonly n: number;
  readonly route: string;
  readonly orderKey: string | undefined;
  state: 'waiting' | 'sending' | DeliveryEnd;
  isBlocked: boolean;
  until: number;
  attempts: number;
  startedAt: number | undefined;
  hasResult: boolean;
}

interface ModelEvent {
  readonly route: string;
  readonly eventId: string;
  readonly n: number;
  readonly until: number;
}

/** All changes are stored at once. */
export class DeliveryModel {
  rows: ModelDelivery[] = [];
  events: ModelEvent[] = [];
  readonly #keptFor: Readonly<Record<DeliveryEnd, number>>;

  constructor(keptFor: Readonly<Record<DeliveryEnd, number>>) {
    this.#keptFor = keptFor;
  }

  /** @returns the number of the delivery that has the event */
  add(
    delivery: Pick<ModelDelivery, 'n' | 'route' | 'orderKey'> & { readonly eventId: string | undefined },
    now: number,
  ): number {
    const { n, route, orderKey, eventId } = delivery;
    const earlier = this.events.find((each) => each.route === route && each.eventId === eventId && each.until > now);
    if (earlier !== undefined) return earlier.n;
    if (eventId !== undefined) this.events.push({ route, eventId, n, until: now + 1000 });
    const isBlocked = this.#hasOpen(route, orderKey);
    const row = { n, route, orderKey, isBlocked, until: now, attempts: 0, startedAt: undefined, hasResult: false };
    this.rows.push({ ...row, state: 'waiting' });
    return n;
  }

  take(route: string, now: number, limit: number): number[] {
    const due = this.#ready(route).filter(({ until }) => until <= now);
    const taken = due.slice(0, limit);
    for (const row of taken) row.state = 'sending';
    return taken.map(({ n }) => n);
  }

  nextDueAt(route: string): number | undefined {
    return this.#ready(route)[0]?.until;
  }

  postpone(n: number, until: number, at: number): void {
    const row = this.find(n);
    if (row?.state !== 'sending') return;
    Object.assign(row, { state: 'waiting', until, attempts: row.attempts + 1, startedAt: row.startedAt ?? at });
  }

  end(n: number, end: DeliveryEnd, at: number, hasResult = false): void {
    const row = this.find(n);
    if (row?.state !== 'sending') return;
    row.attempts += 1;
    row.startedAt ??= at;
    row.hasResult = hasResult;
    this.#end(row, end, at);
  }

  cancel(n: number, now: number): boolean {
    const row = this.find(n);
    if (row?.state !== 'waiting') return false;
    this.#end(row, 'canceled', now);
    return true;
  }

  retry(n: number, now: number): boolean {
    const row = this.find(n);
    if (row === undefined || row.state === 'sending' || row.state === 'delivered') return false;
    if (row.state !== 'waiting') row.isBlocked = this.#hasOpen(row.route, row.orderKey);
    Object.assign(row, { state: 'waiting', until: now, attempts: 0, startedAt: undefined, hasResult: false });
    return true;
  }

  find(n: number): ModelDelivery | undefined {
    return this.rows.find((row) => row.n === n);
  }

  restart(): void {
    for (const row of this.rows) if (row.state === 'sending') row.state = 'waiting';
  }

  /** Removes what is over. */
  expire(now: number): void {
    const keptUntil = ({ state, until }: ModelDelivery): number =>
      state === 'waiting' || state === 'sending' ? Infinity : until + this.#keptFor[state];
    this.rows = this.rows.filter((row) => keptUntil(row) > now);
  }

  #end(row: ModelDelivery, end: DeliveryEnd, at: number): void {
    const { route, orderKey, isBlocked } = row;
    Object.assign(row, { state: end, until: at, isBlocked: false });
    if (isBlocked || orderKey === undefined) return;
    const next = this.rows.find((each) => each.isBlocked && each.route === route && each.orderKey === orderKey);
    if (next !== undefined) Object.assign(next, { isBlocked: false, until: Math.max(next.until, at) });
  }

  #hasOpen(route: string, orderKey: string | undefined): boolean {
    return (
      orderKey !== undefined &&
      this.rows.some(
        (each) =>
          each.route === route && each.orderKey === orderKey && (each.state === 'waiting' || each.state === 'sending'),
      )
    );
  }

  #ready(route: string): ModelDelivery[] {
    return this.rows
      .filter((row) => row.route === route && row.state === 'waiting' && !row.isBlocked)
      .toSorted((a, b) => a.until - b.until || a.n - b.n);
  }
}
