import type { Millis, PerSecond } from '../../core/exchange/attempt-outcome.ts';
import type { LatencySpec } from '../../simulator/upstream/latency-model.ts';
import { Latencies } from '../../simulator/report/latency-histogram.ts';
import type { UpstreamSpec } from '../../simulator/upstream/upstream-model.ts';
import { EventQueue } from '../../simulator/engine/event-queue.ts';
import type { Stretch } from './log-excerpt.ts';
import { Excerpt } from './log-excerpt.ts';
import type { Inferred, KnownLimit } from './infer-bucket.ts';
import type { Answer, Attempts, End, Logged } from './logged-request.ts';

/** How long things took: the median of them, and what one in a hundred took longer than. */
export interface Took {
  readonly p50: Millis;
  readonly p99: Millis;
}

/** The same, for more of them to be drawn. */
export interface Drawn extends Took {
  readonly spec: LatencySpec;
}

/** What a log tells of itself and of the upstream behind it. */
export interface Surveyed {
  readonly requests: number;
  /** From the first to the last. */
  readonly span: Millis;
  readonly successes: number;
  /** Answered 429 by the upstream, or refused by a proxy in front of it. */
  readonly refused: number;
  /** Of them, those that a proxy refused: demand, that says nothing of the upstream. */
  readonly refusedHere: number;
  /** Answered 5xx, or not at all. */
  readonly failed: number;
  /** Those whose client did not wait for the answer. */
  readonly gone: number;
  /** What came of the attempts at the upstream. */
  readonly answers: Readonly<Record<Answer, number>>;
  /** Names of upstreams that the log has, at most `MOST_UPSTREAMS`. */
  readonly upstreams: readonly string[];
  /** Of successes, as their clients had them; undefined where the log does not tell. */
  readonly latency: Took | undefined;
  /** How long the upstream took for what it let pass, and for what it refused; undefined where the log does not tell. */
  readonly service: Drawn | undefined;
  readonly refusing: Drawn | undefined;
}

const MOST_UPSTREAMS = 10;

/** Looks at a log, request by request in order, in constant memory. */
export class Survey {
  readonly #took = new Latencies();
  readonly #service = new Latencies();
  readonly #refusing = new Latencies();
  readonly #ends: Record<End, number> = { served: 0, refused: 0, failed: 0, gone: 0 };
  readonly #answers: Record<Answer, number> = { passed: 0, refused: 0, failed: 0, unclear: 0, unheard: 0 };
  readonly #upstreams = new Set<string>();
  /** Attempts of requests that have arrived, in the order in which they were made. */
  readonly #attempts = new EventQueue<Answer>();
  readonly #excerpt: Excerpt;
  #requests = 0;
  #refusedHere = 0;
  #span = 0;

  /** @param isRateKnown what was never refused is looked at as well then: it tells how large a burst may be */
  constructor(isRateKnown = false) {
    this.#excerpt = new Excerpt(isRateKnown);
  }

  add({ end, attempts, upstream, service, took }: Logged, at: Millis): void {
    this.#requests += 1;
    this.#span = at;
    this.#ends[end] += 1;
    if (end === 'served' && took !== undefined) this.#took.add(took);
    if (end === 'refused' && attempts?.last !== 'refused') this.#refusedHere += 1;
    if (upstream !== '' && this.#upstreams.size < MOST_UPSTREAMS) this.#upstreams.add(upstream);
    if (service !== undefined) {
      if (attempts?.last === 'passed') this.#service.add(service);
      else if (attempts?.last === 'refused') this.#refusing.add(service);
    }
    this.#advance(at);
    if (attempts !== undefined) this.#noteAttempts(attempts, at);
  }

  result(): Surveyed {
    return {
      requests: this.#requests,
      span: this.#span,
      successes: this.#ends.served,
      refused: this.#ends.refused,
      refusedHere: this.#refusedHere,
      failed: this.#ends.failed,
      gone: this.#ends.gone,
      answers: { ...this.#answers },
      upstreams: [...this.#upstreams],
      latency: tell(this.#took),
      service: draw(this.#service),
      refusing: draw(this.#refusing),
    };
  }

  /** Attempts for a limit to be found in: the log is over. */
  stretches(): readonly Stretch[] {
    this.#advance(Number.POSITIVE_INFINITY);
    return this.#excerpt.stretches(readUnclear(this.result()));
  }

  #noteAttempts({ count, last, passed, earlier, firstAfter, lastAfter }: Attempts, at: Millis): void {
    this.#answers[last] += 1;
    this.#attempts.push(at + lastAfter, last);
    for (let i = 0; i < count - 1; i += 1) {
      const answer = i < passed ? 'passed' : earlier;
      this.#answers[answer] += 1;
      // When those between the first and the last were made is not told.
      this.#attempts.push(at + firstAfter + (i * (lastAfter - firstAfter)) / (count - 1), answer);
    }
  }

  #advance(to: Millis): void {
    while (this.#attempts.size > 0 && this.#attempts.nextAt <= to) {
      const at = this.#attempts.nextAt;
      const answer = this.#attempts.pop();
      if (answer !== undefined) this.#excerpt.add(answer, at);
    }
  }
}

/** One in a thousand is told apart: beyond p99 there is some. */
const QUANTILES = 1000;

function tell(latencies: Latencies): Took | undefined {
  return latencies.count === 0 ? undefined : { p50: latencies.quantile(0.5), p99: latencies.quantile(0.99) };
}

function draw(latencies: Latencies): Drawn | undefined {
  const told = tell(latencies);
  if (told === undefined) return undefined;
  const quantiles = Array.from({ length: QUANTILES }, (_, i) => latencies.quantile((i + 0.5) / QUANTILES));
  const mean = quantiles.reduce((a, b) => a + b, 0) / QUANTILES;
  return { ...told, spec: { kind: 'quantiles', mean, quantiles } };
}

/** Signs of a limit and of failures, where an answer says plainly which. */
export function signsOf({ answers, refusedHere }: Surveyed): { readonly limit: number; readonly failure: number } {
  return { limit: answers.refused + refusedHere, failure: answers.failed };
}

/** What attempts came to that were sent again and answered then: what the log has more signs of. */
export function readUnclear(surveyed: Surveyed): 'refused' | 'failed' {
  const { limit, failure } = signsOf(surveyed);
  return limit >= failure ? 'refused' : 'failed';
}

/** Of a log that does not tell how long its upstream takes. */
const USUAL: LatencySpec = { kind: 'lognormal', mean: 100 };

/**
 * An upstream that would have answered like the one behind the log, as far as that can be told: a token bucket.
 * @param inferred undefined where the log shows no limit
 */
export function fitUpstream(surveyed: Surveyed, inferred: Inferred | undefined, known: KnownLimit): UpstreamSpec {
  const { service, refusing, answers } = surveyed;
  const rate = known.rate ?? inferred?.rate;
  const failed = answers.failed + (readUnclear(surveyed) === 'failed' ? answers.unclear : 0);
  const errors = failed === 0 ? [] : [{ probability: failed / (failed + answers.passed), status: 503 }];
  return {
    limit:
      rate === undefined
        ? { kind: 'unlimited' }
        : { kind: 'token-bucket', rate, burst: known.burst ?? inferred?.burst ?? assumeBurst(rate) },
    latency: service?.spec ?? USUAL,
    ...(refusing === undefined ? {} : { refusalLatency: refusing.spec }),
    hints: 'none',
    errors,
  };
}

/** Of a limit that is known, before which nothing was sent: a tenth of a second's worth, as good as any. */
function assumeBurst(rate: PerSecond): number {
  return Math.max(1, Math.round(rate / 10));
}
