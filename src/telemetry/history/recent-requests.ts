import type { RequestOutcome } from '../../core/events/event-labels.ts';
import type { RequestRecord } from '../../core/events/request-record.ts';
import type { ProxyEvent } from '../../core/events/proxy-events.ts';
import type { Millis } from '../../core/scalars.ts';
import { ReusableRecord } from './reusable-record.ts';
import { mergeNewestFirst } from './newest-first.ts';
import { detachPath } from './detach-path.ts';
import { isNotable } from './notable-request.ts';

/** A query for requests that ended recently. */
export interface RecentRequestsQuery {
  readonly outcome?: RequestOutcome | undefined;
  readonly client?: string | undefined;
  readonly upstream?: string | undefined;
  /** Only requests that ended before the one with this number, which may be forgotten already. */
  readonly before?: number | undefined;
  readonly limit: number;
}

/** A request that has ended. */
export interface EndedRequest {
  /** Its number among all that have ended in this process, from 1. */
  readonly number: number;
  /** Its arrival, in milliseconds of the epoch. */
  readonly at: Millis;
  readonly record: RequestRecord;
}

/** Capacities for notable requests and for the others. */
export const MAX_RECENT_REQUESTS = { notable: 2000, others: 500 } as const;

/** A slot for one request, overwritten when it is the oldest. */
class RequestSlot {
  number = 0;
  at: Millis = 0;
  readonly record = new ReusableRecord();
}

class RequestRing {
  readonly #capacity: number;
  readonly #ring: RequestSlot[] = [];
  #count = 0;

  /** @param capacity ≥ 1 */
  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  add({ number, at, record }: EndedRequest): void {
    const slot = (this.#ring[this.#count % this.#capacity] ??= new RequestSlot());
    slot.number = number;
    slot.at = at;
    slot.record.overwrite(record);
    this.#count += 1;
  }

  /** Newest first. Yielded slots are overwritten later. */
  *[Symbol.iterator](): IterableIterator<RequestSlot> {
    for (let back = 1; back <= this.#ring.length; back += 1) {
      const slot = this.#ring[(this.#count - back) % this.#capacity];
      if (slot !== undefined) yield slot;
    }
  }
}

/** The last requests that ended. Notable ones have a ring of their own, so that ordinary ones do not displace them. */
export class RecentRequests {
  readonly #now: () => Millis;
  readonly #notable = new RequestRing(MAX_RECENT_REQUESTS.notable);
  readonly #others = new RequestRing(MAX_RECENT_REQUESTS.others);
  #count = 0;

  /** @param now milliseconds of the epoch */
  constructor(now: () => Millis) {
    this.#now = now;
  }

  readonly listen = (event: ProxyEvent): void => {
    if (event.type !== 'done') return;
    const { record } = event;
    this.#count += 1;
    const [number, at] = [this.#count, this.#now() - record.took];
    if (!isNotable(record, undefined)) return this.#others.add({ number, at, record });
    // Detached: in a flood of these, each path could keep a long string alive.
    this.#notable.add({ number, at, record: { ...record, path: detachPath(record.path) } });
  };

  /** Number of requests that have ended so far. */
  get count(): number {
    return this.#count;
  }

  /** Newest first. */
  recent({ outcome, client, upstream, before, limit }: RecentRequestsQuery): readonly EndedRequest[] {
    const found: EndedRequest[] = [];
    for (const { number, at, record } of mergeNewestFirst(this.#notable, this.#others)) {
      if (found.length === limit) break;
      if (before !== undefined && number >= before) continue;
      if (outcome !== undefined && record.outcome !== outcome) continue;
      if (client !== undefined && record.client !== client) continue;
      if (upstream !== undefined && record.upstream !== upstream) continue;
      found.push({ number, at, record: record.copy() });
    }
    return found;
  }
}
