import type { RequestOutcome, RequestRecord, TideEvent } from '../../core/events/proxy-events.ts';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import { RecordCopy } from './reusable-record.ts';
import { newestFirst } from './newest-first.ts';
import { detach } from '../explanations/explanation-record.ts';
import { isTroubled } from './notable-request.ts';

/** What is asked of the requests that have ended lately. */
export interface RequestQuery {
  readonly outcome?: RequestOutcome | undefined;
  readonly client?: string | undefined;
  readonly upstream?: string | undefined;
  /** Those that ended before the one of this number, whether or not that is remembered still. */
  readonly before?: number | undefined;
  readonly limit: number;
}

/** A request that has ended. */
export interface EndedRequest {
  /** Of all that have ended in this process, from 1. */
  readonly number: number;
  /** Milliseconds of the epoch, of its arrival. */
  readonly at: Millis;
  readonly record: RequestRecord;
}

/** So many are remembered: of troubled requests, and of the others. */
export const MOST_REQUESTS = { troubled: 2000, others: 500 } as const;

/** A place for one, which is written over when it is the oldest. */
class Place {
  number = 0;
  at: Millis = 0;
  readonly record = new RecordCopy();
}

class Newest {
  readonly #most: number;
  readonly #ring: Place[] = [];
  #count = 0;

  /** @param most ≥ 1 */
  constructor(most: number) {
    this.#most = most;
  }

  add({ number, at, record }: EndedRequest): void {
    const place = (this.#ring[this.#count % this.#most] ??= new Place());
    place.number = number;
    place.at = at;
    place.record.write(record);
    this.#count += 1;
  }

  /** Newest first. What is yielded is written over later. */
  *[Symbol.iterator](): IterableIterator<Place> {
    for (let back = 1; back <= this.#ring.length; back += 1) {
      const place = this.#ring[(this.#count - back) % this.#most];
      if (place !== undefined) yield place;
    }
  }
}

/**
 * The requests that have ended last, and of those that ended in trouble more: they do not drown in what went well.
 */
export class RecentRequests {
  readonly #now: () => Millis;
  readonly #troubled = new Newest(MOST_REQUESTS.troubled);
  readonly #others = new Newest(MOST_REQUESTS.others);
  #count = 0;

  /** @param now milliseconds of the epoch */
  constructor(now: () => Millis) {
    this.#now = now;
  }

  readonly listen = (event: TideEvent): void => {
    if (event.type !== 'done') return;
    const { record } = event;
    this.#count += 1;
    const [number, at] = [this.#count, this.#now() - record.took];
    if (!isTroubled(record, undefined)) return this.#others.add({ number, at, record });
    // There are many of these, and a flood of them may have the longest paths there are.
    this.#troubled.add({ number, at, record: { ...record, path: detach(record.path) } });
  };

  /** How many have ended in all. */
  get count(): number {
    return this.#count;
  }

  /** Newest first. */
  recent({ outcome, client, upstream, before, limit }: RequestQuery): readonly EndedRequest[] {
    const found: EndedRequest[] = [];
    for (const { number, at, record } of newestFirst(this.#troubled, this.#others)) {
      if (found.length === limit) break;
      if (before !== undefined && number >= before) continue;
      if (outcome !== undefined && record.outcome !== outcome) continue;
      if (client !== undefined && record.client !== client) continue;
      if (upstream !== undefined && record.upstream !== upstream) continue;
      found.push({ number, at, record: record.read() });
    }
    return found;
  }
}
