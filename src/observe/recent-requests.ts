import type { RequestOutcome, RequestRecord, TideEvent } from '../policy/events.ts';
import type { Millis } from '../policy/types.ts';

/** What is asked of the requests that have ended lately. */
export interface RequestQuery {
  readonly outcome?: RequestOutcome | undefined;
  readonly client?: string | undefined;
  readonly upstream?: string | undefined;
  /** Those that ended before the one of this id. */
  readonly after?: string | undefined;
  readonly limit: number;
}

/** A request that has ended. */
export interface EndedRequest {
  /** Milliseconds of the epoch, of its arrival. */
  readonly at: Millis;
  readonly record: RequestRecord;
}

/** So many are remembered. */
const MOST = 500;

/** The requests that have ended last. Of each it keeps what was made for the log anyway. */
export class RecentRequests {
  readonly #now: () => Millis;
  readonly #ring: EndedRequest[] = [];
  #count = 0;

  /** @param now milliseconds of the epoch */
  constructor(now: () => Millis) {
    this.#now = now;
  }

  readonly listen = (event: TideEvent): void => {
    if (event.type !== 'done') return;
    const { record } = event;
    this.#ring[this.#count % MOST] = { at: this.#now() - record.took, record };
    this.#count += 1;
  };

  /** How many have ended in all. */
  get count(): number {
    return this.#count;
  }

  /** Newest first. */
  recent({ outcome, client, upstream, after, limit }: RequestQuery): readonly EndedRequest[] {
    const found: EndedRequest[] = [];
    let isAfter = after === undefined;
    for (let i = this.#count - 1; i >= 0 && i >= this.#count - MOST && found.length < limit; i -= 1) {
      const ended = this.#ring[i % MOST];
      if (ended === undefined) break;
      const { record } = ended;
      if (!isAfter) {
        isAfter = record.id === after;
        continue;
      }
      if (outcome !== undefined && record.outcome !== outcome) continue;
      if (client !== undefined && record.client !== client) continue;
      if (upstream !== undefined && record.upstream !== upstream) continue;
      found.push(ended);
    }
    return found;
  }
}
