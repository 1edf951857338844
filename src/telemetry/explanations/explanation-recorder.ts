import type { ResourceBound } from '../../core/overload/resource-bound.ts';
import type { RequestOutcome } from '../../core/events/event-labels.ts';
import type { RequestRecord } from '../../core/events/request-record.ts';
import type { Millis } from '../../core/scalars.ts';
import type { AttemptOutcome } from '../../core/exchange/attempt-outcome.ts';
import type { TraceStep, ObservedExchange, ExchangeObserver } from '../../core/exchange/exchange-observer.ts';
import type { Explanation } from './build-explanation.ts';
import { buildExplanation } from './build-explanation.ts';
import { mergeNewestFirst } from '../history/newest-first.ts';
import { ByteBoundedRing } from '../history/byte-bounded-ring.ts';
import type { ExplanationRecord } from './explanation-record.ts';
import { createExplanationRecord } from './explanation-record.ts';
import { isOrdinaryOutcome, isNotable } from '../history/notable-request.ts';

/** A request in a list of recent requests. */
export interface RequestSummary {
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

export interface RecentExplanationsQuery {
  readonly outcome?: string | undefined;
  readonly client?: string | undefined;
  readonly upstream?: string | undefined;
  /** 50 unless given. */
  readonly limit?: number | undefined;
  /** The `next` of the page before. */
  readonly cursor?: string | undefined;
}

export interface ExplanationRecorderOptions {
  /** Milliseconds of the epoch. */
  readonly wallClock: () => Millis;
  /** Maximum memory of all records; `MAX_RECORD_BYTES` unless given. */
  readonly maxBytes?: number;
}

/** Maximum records of notable requests, and of the sampled others. */
export const MAX_RECORDS = { notable: 10_000, sampled: 2000 } as const;
export const MAX_RECORD_BYTES = 24 * 1024 * 1024;
/** The share of the bytes for sampled requests. */
const SAMPLED_BYTES_SHARE = 1 / 8;

/** Ordinary requests recorded per second, and the burst: a quiet proxy records all, a busy one some of each minute. */
const SAMPLES_PER_SECOND = 5;
const SAMPLE_BURST = 100;

/** Bounds the steps of one record, since a request may have very many attempts and polls. Its end is always kept. */
export const MAX_RECORD_STEPS = 60;

/**
 * Records the newest requests: all notable ones, and a sample of the others. An ordinary request costs a few comparisons; its
 * explanation is built on demand.
 */
export class ExplanationRecorder implements ExchangeObserver {
  readonly #wallClock: () => Millis;
  readonly #notable: ByteBoundedRing<ExplanationRecord>;
  readonly #sampled: ByteBoundedRing<ExplanationRecord>;
  #recorded = 0;
  #sampleTokens = SAMPLE_BURST;
  #refilledAt: Millis = 0;

  constructor({ wallClock, maxBytes = MAX_RECORD_BYTES }: ExplanationRecorderOptions) {
    this.#wallClock = wallClock;
    this.#notable = new ByteBoundedRing(MAX_RECORDS.notable, (1 - SAMPLED_BYTES_SHARE) * maxBytes);
    this.#sampled = new ByteBoundedRing(MAX_RECORDS.sampled, SAMPLED_BYTES_SHARE * maxBytes);
  }

  /** Finds the explanation of a request by the id in its response. */
  find(id: string): Explanation | undefined {
    // Lookups are rare: a scan is cheaper than an index that every request would pay for.
    for (const ring of [this.#notable, this.#sampled]) {
      for (const recorded of ring) if (recorded.record.id === id) return buildExplanation(recorded);
    }
    return undefined;
  }

  /** Recent requests, the last ended first. */
  recent({ outcome, client, upstream, limit = 50, cursor }: RecentExplanationsQuery = {}): {
    requests: RequestSummary[];
    next: string | null;
  } {
    const before = cursor === undefined ? Number.POSITIVE_INFINITY : Number.parseInt(cursor, 36);
    const requests: RequestSummary[] = [];
    let last = 0;
    for (const recorded of mergeNewestFirst(this.#notable, this.#sampled)) {
      const { record } = recorded;
      if (!(recorded.number < before)) continue;
      if (outcome !== undefined && record.outcome !== outcome) continue;
      if (client !== undefined && record.client !== client) continue;
      if (upstream !== undefined && record.upstream !== upstream) continue;
      if (requests.length === limit) return { requests, next: last.toString(36) };
      requests.push(summarizeRequest(record, recorded.arrivedAt));
      last = recorded.number;
    }
    return { requests, next: null };
  }

  /** The bound on notable requests; sampled ones are few. */
  get bound(): ResourceBound {
    return { name: 'stories', used: this.#notable.fullness, reached: this.#notable.evicted };
  }

  /** Approximate memory of all records. */
  get bytes(): number {
    return this.#notable.bytes + this.#sampled.bytes;
  }

  // — ExchangeObserver —

  onStart(): void {
    // No step to record yet.
  }

  onSend(): void {
    // Derived from the outcome.
  }

  onOutcome(exchange: ObservedExchange, attempt: number, outcome: AttemptOutcome, at: Millis): void {
    if (exchange.steps === undefined && isOrdinaryOutcome(outcome)) return;
    const { endpoint, cause, account, limit } = exchange.lastAttempt();
    this.onStep(exchange, { what: 'answered', at, attempt, outcome, endpoint, cause, account, limit });
  }

  onStep(exchange: ObservedExchange, step: TraceStep): void {
    if (exchange.steps === undefined) {
      exchange.steps = [];
      // The first response was ordinary and not recorded, but polls refer to it.
      if (step.what === 'poll' || step.what === 'unpolled') this.#addFirstAnswer(exchange, step.at);
    }
    if (exchange.steps.length < MAX_RECORD_STEPS) exchange.steps.push(step);
  }

  #addFirstAnswer(exchange: ObservedExchange, at: Millis): void {
    const { endpoint, cause, outcome } = exchange.lastAttempt();
    if (outcome !== undefined) this.onStep(exchange, { what: 'answered', at, attempt: 1, outcome, endpoint, cause });
  }

  onEnd(exchange: ObservedExchange, record: RequestRecord): void {
    this.#record(exchange, record);
  }

  onRefused(record: RequestRecord): void {
    this.#record(undefined, record);
  }

  #record(exchange: ObservedExchange | undefined, record: RequestRecord): void {
    const notable = isNotable(record, exchange?.steps);
    if (!notable && !this.#isSampled(record.at + record.took)) return;
    this.#recorded += 1;
    const recorded = createExplanationRecord(this.#recorded, exchange, record, this.#wallClock() - record.took);
    (notable ? this.#notable : this.#sampled).add(recorded);
  }

  #isSampled(now: Millis): boolean {
    const earned = ((now - this.#refilledAt) * SAMPLES_PER_SECOND) / 1000;
    if (earned >= 1) {
      this.#sampleTokens = Math.min(SAMPLE_BURST, this.#sampleTokens + Math.floor(earned));
      this.#refilledAt = now;
    }
    if (this.#sampleTokens === 0) return false;
    this.#sampleTokens -= 1;
    return true;
  }
}

export function summarizeRequest(record: RequestRecord, arrivedAt: Millis): RequestSummary {
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
