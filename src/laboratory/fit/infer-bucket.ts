import type { Millis, PerSecond } from '../../core/scalars.ts';
import type { Experiment } from '../experiment.ts';
import type { BucketReplayResult } from './bucket-replay.ts';
import { BucketReplay } from './bucket-replay.ts';
import type { LogSegment } from './log-excerpt.ts';
import { PASSED, REFUSED } from './log-excerpt.ts';

/** The token bucket that reproduces the log best. */
export interface InferredBucket {
  readonly rate: PerSecond;
  readonly burst: number;
  /** `least`: a larger burst fits as well, because no request followed a rest that would have filled it. */
  readonly burstIs: 'told' | 'least';
  /** Attempts examined, and how many of them the upstream and the bucket refused. */
  readonly attempts: number;
  readonly refused: number;
  readonly wouldRefuse: number;
  /** The difference between accepted attempts of bucket and log in spans of this length, as a share of the log's. */
  readonly off: number;
  readonly span: Millis;
}

export interface KnownLimit {
  /** Undefined: inferred from the log. */
  readonly rate: PerSecond | undefined;
  readonly burst: number | undefined;
}

interface BucketFit extends BucketReplayResult {
  readonly rate: PerSecond;
  readonly burst: number;
  readonly misfit: number;
}

/** Lengths of spans, in passes: short ones show a burst, long ones a rate. */
const SPANS = [10, 100, 1000];
/** For a log shorter than a span, a tenth of its passes. */
const SHORT_LOG = 2000;
const SHORTEST_SPAN: Millis = 100;
/** Ratio of neighbouring rates: at most, and at the end of the search. */
const INITIAL_RATE_STEP = 1.02;
const MAX_RATE_FACTOR = 1000;
const RATE_PRECISION = 1.0005;
/**
 * Misfits are sums of logarithms. Two closer than the first fit equally well; one more than the second apart is
 * significantly worse.
 */
const EQUAL_MISFIT = 0.02;
const CLEARLY_WORSE = 0.5;
/** Approximate number of bursts tried to refine the fit. */
const REFINEMENTS = 14;

/**
 * Infers the token bucket that reproduces the upstream of a log. For each burst there is one rate at which it would have
 * refused as many as the log has; of those pairs, the one whose accepted attempts match the log in short and long spans is taken. Where
 * several match, the smallest burst is taken: the log shows no larger one.
 */
export class BucketSearch implements Experiment<InferredBucket | undefined> {
  readonly #known: KnownLimit;
  readonly #replay: BucketReplay;
  /** A replay without spans: three times as fast. */
  readonly #countReplay: BucketReplay;
  readonly #spans: readonly Millis[];
  readonly #counts: { readonly attempts: number; readonly passed: number; readonly refused: number };
  readonly #tried: BucketFit[] = [];
  /** Mean rate of the accepted attempts examined. */
  readonly #passed: PerSecond;
  /** Bursts still to try. */
  readonly #pendingBursts: number[];
  #factor: number;

  constructor(stretches: readonly LogSegment[], known: KnownLimit) {
    const counts = countAttempts(stretches);
    this.#known = known;
    this.#counts = counts;
    this.#passed = (1000 * Math.max(1, counts.passed)) / Math.max(1, counts.time);
    const part = counts.passed < SHORT_LOG ? 0.1 : 1;
    this.#spans = SPANS.map((passes) => Math.max(SHORTEST_SPAN, (1000 * part * passes) / this.#passed));
    this.#replay = new BucketReplay(stretches, this.#spans);
    this.#countReplay = new BucketReplay(stretches, []);
    const isInferable = known.rate === undefined ? counts.refused > 0 && counts.passed > 0 : counts.attempts > 0;
    this.#pendingBursts = isInferable ? burstCandidates(known.burst, counts.passed) : [];
    this.#factor = known.burst === undefined ? Math.SQRT2 : 1;
  }

  get progress(): number {
    return this.#pendingBursts.length === 0
      ? 1
      : this.#tried.length / (this.#tried.length + this.#pendingBursts.length + REFINEMENTS);
  }

  /** Tries one burst. */
  step(): void {
    const burst = this.#pendingBursts.shift();
    if (burst === undefined) return;
    this.#try(burst);
    if (this.#pendingBursts.length === 0) this.#refine();
  }

  result(): InferredBucket | undefined {
    const best = this.#best();
    if (best === undefined) return undefined;
    const { rate, burst, refused, deviations } = best;
    const { attempts, passed } = this.#counts;
    return {
      rate: this.#known.rate ?? Number(rate.toPrecision(4)),
      burst,
      burstIs: this.#isBurstDetermined(best) ? 'told' : 'least',
      attempts,
      refused: this.#counts.refused,
      wouldRefuse: refused,
      off: passed === 0 ? 0 : (deviations[1] ?? 0) / passed,
      span: this.#spans[1] ?? 0,
    };
  }

  /** The smallest burst among the best fits. */
  #best(): BucketFit | undefined {
    const least = Math.min(...this.#tried.map(({ misfit }) => misfit));
    const good = this.#tried.filter(({ misfit }) => misfit <= least + EQUAL_MISFIT);
    return good.toSorted((a, b) => a.burst - b.burst)[0];
  }

  /** Refines around the best fit. */
  #refine(): void {
    const best = this.#best();
    this.#factor = Math.sqrt(this.#factor);
    if (best === undefined || this.#factor < 1.004) return;
    const { burst } = best;
    const around = [Math.round(burst / this.#factor), Math.round(burst * this.#factor)];
    for (const each of around) {
      if (each >= 1 && this.#tried.every((tried) => tried.burst !== each)) this.#pendingBursts.push(each);
    }
    if (this.#pendingBursts.length === 0) this.#refine();
  }

  #try(burst: number): void {
    const rate = this.#known.rate ?? this.#rateFor(burst);
    const replayed = this.#replay.replay(rate, burst);
    this.#tried.push({ ...replayed, rate, burst, misfit: this.#misfit(replayed) });
  }

  /** Whether every larger burst fits worse, even if the bucket was not full at the start of the log. */
  #isBurstDetermined({ rate, burst }: BucketFit): boolean {
    const misfit = this.#misfit(this.#replay.replay(rate, burst, false));
    const larger = this.#tried.filter((each) => each.burst >= 1.5 * burst);
    return larger.every(
      (each) => this.#misfit(this.#replay.replay(each.rate, each.burst, false)) > misfit + CLEARLY_WORSE,
    );
  }

  #misfit({ deviations }: BucketReplayResult): number {
    // The misfit that randomness leaves even in a perfect fit.
    const least = 1 + Math.sqrt(this.#counts.passed) / 10;
    return deviations.reduce((sum, each) => sum + Math.log(each + least), 0);
  }

  /** The rate at which a bucket of this burst refuses as many as the log. Refusals decrease with the rate. */
  #rateFor(burst: number): PerSecond {
    const { refused } = this.#counts;
    const refusesMore = (rate: PerSecond): boolean => this.#countReplay.replay(rate, burst).refused > refused;
    const [slowest, fastest] = [this.#passed / MAX_RATE_FACTOR, this.#passed * MAX_RATE_FACTOR];
    const guess = this.#nearest(burst)?.rate ?? this.#passed;
    let [low, high, factor] = [guess, guess, INITIAL_RATE_STEP];
    if (refusesMore(guess)) {
      do {
        [low, high, factor] = [high, high * factor, factor * factor];
      } while (high < fastest && refusesMore(high));
    } else {
      do {
        [low, high, factor] = [low / factor, low, factor * factor];
      } while (low > slowest && !refusesMore(low));
    }
    while (high > RATE_PRECISION * low) {
      const middle = Math.sqrt(low * high);
      if (refusesMore(middle)) low = middle;
      else high = middle;
    }
    // `high` refuses no more than the log; `low` does.
    return Math.max(slowest, high);
  }

  /** Similar bursts have similar rates. */
  #nearest(burst: number): BucketFit | undefined {
    const far = (each: BucketFit): number => Math.abs(Math.log(each.burst / burst));
    return this.#tried.toSorted((a, b) => far(a) - far(b))[0];
  }
}

/** Powers of √2, up to the largest burst the log could show. */
function burstCandidates(known: number | undefined, passed: number): number[] {
  if (known !== undefined) return [known];
  const bursts = [1];
  for (let next = 2; next < 2 * passed; next = Math.ceil(Math.SQRT2 * next)) bursts.push(next);
  return bursts;
}

/** `time`: total time of the stretches, in ms. */
function countAttempts(stretches: readonly LogSegment[]) {
  let [attempts, passed, refused, time] = [0, 0, 0, 0];
  for (const { at, outcomes, count } of stretches) {
    attempts += count;
    time += (at[count - 1] ?? 0) - (at[0] ?? 0);
    for (let i = 0; i < count; i += 1) {
      if (outcomes[i] === PASSED) passed += 1;
      else if (outcomes[i] === REFUSED) refused += 1;
    }
  }
  return { attempts, passed, refused, time };
}
