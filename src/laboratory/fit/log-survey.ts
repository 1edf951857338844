import type { Millis } from '../../core/scalars.ts';
import type { LatencySpec } from '../../simulator/upstream/latency-model.ts';
import { LatencyHistogram } from '../../simulator/report/latency-histogram.ts';
import { EventQueue } from '../../simulator/engine/event-queue.ts';
import type { LogSegment } from './log-excerpt.ts';
import { LogExcerpt } from './log-excerpt.ts';
import { WholeSeconds } from './whole-seconds.ts';
import type { AttemptAnswer, LoggedAttempts, LoggedEnd, LoggedRequest } from './logged-request.ts';

/** Median and 99th percentile of times, in ms. */
export interface LatencySummary {
  readonly p50: Millis;
  readonly p99: Millis;
}

/** The same, with a sample for drawing values. */
export interface SampledLatency extends LatencySummary {
  readonly spec: LatencySpec;
}

/** What a log shows of its requests and of the upstream. */
export interface LogSummary {
  readonly requests: number;
  /** Time from the first to the last request, in ms. */
  readonly span: Millis;
  readonly successes: number;
  /** Answered 429 by the upstream, or rejected by a proxy in front of it. */
  readonly refused: number;
  /** Those of them that a proxy rejected: demand, without information about the upstream. */
  readonly refusedHere: number;
  /** Answered 5xx, or without a response. */
  readonly failed: number;
  /** Requests whose client disconnected before the response. */
  readonly gone: number;
  /** Outcomes of the attempts at the upstream. */
  readonly answers: Readonly<Record<AttemptAnswer, number>>;
  /** Whether the log has its times in whole seconds: too coarse to tell a kind of limit. */
  readonly hasWholeSeconds: boolean;
  /** Names of upstreams that the log has, at most `MAX_UPSTREAMS`. */
  readonly upstreams: readonly string[];
  /** Latency of successes for their clients; undefined if the log has no times. */
  readonly latency: LatencySummary | undefined;
  /** Time of the upstream for accepted and for refused attempts; undefined if the log has no times. */
  readonly service: SampledLatency | undefined;
  readonly refusing: SampledLatency | undefined;
}

const MAX_UPSTREAMS = 10;

interface TimedAnswer {
  readonly answer: AttemptAnswer;
  /** NaN if the log does not have it. */
  readonly took: Millis;
}

/** Answers without a time: one object each. */
const UNTIMED: Readonly<Record<AttemptAnswer, TimedAnswer>> = {
  passed: { answer: 'passed', took: Number.NaN },
  refused: { answer: 'refused', took: Number.NaN },
  failed: { answer: 'failed', took: Number.NaN },
  unclear: { answer: 'unclear', took: Number.NaN },
  unheard: { answer: 'unheard', took: Number.NaN },
};

/** Surveys a log, request by request in order, in constant memory. */
export class LogSurvey {
  readonly #took = new LatencyHistogram();
  readonly #service = new LatencyHistogram();
  readonly #refusing = new LatencyHistogram();
  readonly #ends: Record<LoggedEnd, number> = { served: 0, refused: 0, failed: 0, gone: 0 };
  readonly #answers: Record<AttemptAnswer, number> = { passed: 0, refused: 0, failed: 0, unclear: 0, unheard: 0 };
  readonly #upstreams = new Set<string>();
  /** Attempts of requests that have arrived, in time order. */
  readonly #attempts = new EventQueue<TimedAnswer>();
  readonly #excerpt: LogExcerpt;
  readonly #arrivals = new WholeSeconds();
  readonly #departures = new WholeSeconds();
  #requests = 0;
  #refusedHere = 0;
  #span = 0;

  /** @param isRateKnown examines stretches without refusals as well: they bound the burst */
  constructor(isRateKnown = false) {
    this.#excerpt = new LogExcerpt(isRateKnown);
  }

  add({ end, attempts, upstream, service, took }: LoggedRequest, at: Millis): void {
    this.#requests += 1;
    this.#span = at;
    this.#arrivals.add(at);
    this.#departures.add(at + (took ?? 0));
    this.#ends[end] += 1;
    if (end === 'served' && took !== undefined) this.#took.add(took);
    if (end === 'refused' && attempts?.last !== 'refused') this.#refusedHere += 1;
    if (upstream !== '' && this.#upstreams.size < MAX_UPSTREAMS) this.#upstreams.add(upstream);
    if (service !== undefined) {
      if (attempts?.last === 'passed') this.#service.add(service);
      else if (attempts?.last === 'refused') this.#refusing.add(service);
    }
    this.#advance(at);
    if (attempts !== undefined) this.#recordAttempts(attempts, at, service);
  }

  result(): LogSummary {
    return {
      requests: this.#requests,
      span: this.#span,
      successes: this.#ends.served,
      refused: this.#ends.refused,
      refusedHere: this.#refusedHere,
      failed: this.#ends.failed,
      gone: this.#ends.gone,
      answers: { ...this.#answers },
      hasWholeSeconds: this.#arrivals.isTrue || this.#departures.isTrue,
      upstreams: [...this.#upstreams],
      latency: summarizeLatency(this.#took),
      service: sampleLatency(this.#service),
      refusing: sampleLatency(this.#refusing),
    };
  }

  /** The attempts to infer a limit from. Call at the end of the log. */
  segments(): readonly LogSegment[] {
    this.#advance(Number.POSITIVE_INFINITY);
    return this.#excerpt.segments(classifyUnclear(this.result()));
  }

  #recordAttempts(
    { count, last, passed, earlier, firstAfter, lastAfter }: LoggedAttempts,
    at: Millis,
    took: Millis = Number.NaN,
  ): void {
    this.#answers[last] += 1;
    this.#attempts.push(at + lastAfter, Number.isNaN(took) ? UNTIMED[last] : { answer: last, took });
    for (let i = 0; i < count - 1; i += 1) {
      const answer = i < passed ? 'passed' : earlier;
      this.#answers[answer] += 1;
      // The log has no times for attempts between the first and the last.
      this.#attempts.push(at + firstAfter + (i * (lastAfter - firstAfter)) / (count - 1), UNTIMED[answer]);
    }
  }

  #advance(to: Millis): void {
    while (this.#attempts.size > 0 && this.#attempts.nextAt <= to) {
      const at = this.#attempts.nextAt;
      const timed = this.#attempts.pop();
      if (timed !== undefined) this.#excerpt.add(timed.answer, at, timed.took);
    }
  }
}

/** Resolution of a thousandth, so that the sample has values beyond p99. */
const QUANTILES = 1000;

function summarizeLatency(latencies: LatencyHistogram): LatencySummary | undefined {
  return latencies.count === 0 ? undefined : { p50: latencies.quantile(0.5), p99: latencies.quantile(0.99) };
}

function sampleLatency(latencies: LatencyHistogram): SampledLatency | undefined {
  const summary = summarizeLatency(latencies);
  if (summary === undefined) return undefined;
  const quantiles = Array.from({ length: QUANTILES }, (_, i) => latencies.quantile((i + 0.5) / QUANTILES));
  const mean = quantiles.reduce((a, b) => a + b, 0) / QUANTILES;
  return { ...summary, spec: { kind: 'quantiles', mean, quantiles } };
}

/** Counts of explicit signs of a limit and of failures. */
export function countSigns({ answers, refusedHere }: LogSummary): { readonly limit: number; readonly failure: number } {
  return { limit: answers.refused + refusedHere, failure: answers.failed };
}

/** The outcome assumed for retried attempts: the one with more explicit signs in the log. */
export function classifyUnclear(surveyed: LogSummary): 'refused' | 'failed' {
  const { limit, failure } = countSigns(surveyed);
  return limit >= failure ? 'refused' : 'failed';
}
