import type { Bound } from '../../core/overload/resource-bound.ts';
import type { RequestOutcome, RequestRecord } from '../../core/events/proxy-events.ts';
import type { Millis, Outcome } from '../../core/exchange/attempt-outcome.ts';
import type { Step, Watched, Watcher } from '../../core/exchange/exchange-observer.ts';
import type { Explanation } from './build-explanation.ts';
import { explain } from './build-explanation.ts';
import { newestFirst } from '../history/newest-first.ts';
import { Ring } from '../history/byte-bounded-ring.ts';
import type { Story } from './explanation-record.ts';
import { keepStory } from './explanation-record.ts';
import { isOrdinary, isTroubled } from '../history/notable-request.ts';

/** A request in a list. */
export interface RequestRow {
  readonly id: string;
  /** ISO 8601. */
  readonly at: string;
  readonly route: string;
  readonly upstream: string;
  /** Hashed identity. */
  readonly client: string;
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly outcome: RequestOutcome;
  readonly reason: string | null;
  readonly attempts: number;
  readonly tookSeconds: number;
}

export interface RecentQuery {
  readonly outcome?: string | undefined;
  readonly client?: string | undefined;
  readonly upstream?: string | undefined;
  /** 50 unless given. */
  readonly limit?: number | undefined;
  /** The `next` of the page before. */
  readonly cursor?: string | undefined;
}

export interface StoriesOptions {
  /** Milliseconds of the epoch. */
  readonly wallClock: () => Millis;
  /** What all stories may take of memory; `MOST_BYTES` unless given. */
  readonly maxBytes?: number;
}

/** Of troubled requests, and of the others. */
export const MOST_STORIES = { troubled: 10_000, sampled: 2000 } as const;
export const MOST_BYTES = 24 * 1024 * 1024;
/** Of the bytes, for the others. */
const SAMPLED_PART = 1 / 8;

/** Of ordinary requests so many are kept a second, and so many at once: a quiet proxy keeps all, and a busy one some of each minute. */
const SAMPLES_A_SECOND = 5;
const SAMPLES_AT_ONCE = 100;

/** A retry policy may ask for a thousand attempts: of one story no more is kept than this, and its end. */
export const MOST_STEPS = 60;

/**
 * The stories of the newest requests: of all that were troubled, and of a sample of the others. An ordinary request costs a few
 * comparisons; what a story tells is put together when somebody asks.
 */
export class Stories implements Watcher {
  readonly #wallClock: () => Millis;
  readonly #troubled: Ring<Story>;
  readonly #sampled: Ring<Story>;
  #kept = 0;
  #samples = SAMPLES_AT_ONCE;
  #sampledAt: Millis = 0;

  constructor({ wallClock, maxBytes = MOST_BYTES }: StoriesOptions) {
    this.#wallClock = wallClock;
    this.#troubled = new Ring(MOST_STORIES.troubled, (1 - SAMPLED_PART) * maxBytes);
    this.#sampled = new Ring(MOST_STORIES.sampled, SAMPLED_PART * maxBytes);
  }

  /** By the id that its answer carried. */
  find(id: string): Explanation | undefined {
    // People ask, not programs: to look at all of them is cheaper than an index that every request would pay for.
    for (const ring of [this.#troubled, this.#sampled]) {
      for (const story of ring) if (story.record.id === id) return explain(story);
    }
    return undefined;
  }

  /** Newest first: by the time they were over. */
  recent({ outcome, client, upstream, limit = 50, cursor }: RecentQuery = {}): {
    requests: RequestRow[];
    next: string | null;
  } {
    const before = cursor === undefined ? Number.POSITIVE_INFINITY : Number.parseInt(cursor, 36);
    const requests: RequestRow[] = [];
    let last = 0;
    for (const story of newestFirst(this.#troubled, this.#sampled)) {
      const { record } = story;
      if (!(story.number < before)) continue;
      if (outcome !== undefined && record.outcome !== outcome) continue;
      if (client !== undefined && record.client !== client) continue;
      if (upstream !== undefined && record.upstream !== upstream) continue;
      if (requests.length === limit) return { requests, next: last.toString(36) };
      requests.push(rowOf(record, story.arrivedAt));
      last = story.number;
    }
    return { requests, next: null };
  }

  /** Those of troubled requests; the others are few. */
  get bound(): Bound {
    return { name: 'stories', used: this.#troubled.fullness, reached: this.#troubled.forgotten };
  }

  /** What is kept takes of memory, about. */
  get bytes(): number {
    return this.#troubled.bytes + this.#sampled.bytes;
  }

  // — Watcher —

  began(): void {
    // Nothing has happened yet.
  }

  sending(): void {
    // It is told from what comes of it.
  }

  settled(watched: Watched, attempt: number, outcome: Outcome, at: Millis): void {
    if (watched.steps === undefined && isOrdinary(outcome)) return;
    const { endpoint, cause, limit } = watched.lastAttempt();
    this.noted(watched, { what: 'answered', at, attempt, outcome, endpoint, cause, limit });
  }

  noted(watched: Watched, step: Step): void {
    if (watched.steps === undefined) {
      watched.steps = [];
      // What came before is told too: there was nothing to tell of it then.
      if (step.what === 'poll' || step.what === 'unpolled') this.#noteAnswer(watched, step.at);
    }
    if (watched.steps.length < MOST_STEPS) watched.steps.push(step);
  }

  #noteAnswer(watched: Watched, at: Millis): void {
    const { endpoint, cause, outcome } = watched.lastAttempt();
    if (outcome !== undefined) this.noted(watched, { what: 'answered', at, attempt: 1, outcome, endpoint, cause });
  }

  over(watched: Watched, record: RequestRecord): void {
    this.#keep(watched, record);
  }

  refused(record: RequestRecord): void {
    this.#keep(undefined, record);
  }

  #keep(watched: Watched | undefined, record: RequestRecord): void {
    const troubled = isTroubled(record, watched?.steps);
    if (!troubled && !this.#isSampled(record.at + record.took)) return;
    this.#kept += 1;
    const story = keepStory(this.#kept, watched, record, this.#wallClock() - record.took);
    (troubled ? this.#troubled : this.#sampled).add(story);
  }

  #isSampled(now: Millis): boolean {
    const earned = ((now - this.#sampledAt) * SAMPLES_A_SECOND) / 1000;
    if (earned >= 1) {
      this.#samples = Math.min(SAMPLES_AT_ONCE, this.#samples + Math.floor(earned));
      this.#sampledAt = now;
    }
    if (this.#samples === 0) return false;
    this.#samples -= 1;
    return true;
  }
}

export function rowOf(record: RequestRecord, arrivedAt: Millis): RequestRow {
  const { id, route, upstream, client, method, path, status, outcome, reason, attempts, took } = record;
  return {
    id,
    at: new Date(arrivedAt).toISOString(),
    route,
    upstream,
    client,
    method,
    path,
    status,
    outcome,
    reason: reason ?? null,
    attempts,
    tookSeconds: Math.round(took) / 1000,
  };
}
