import type { Millis, PerSecond } from '../../core/exchange/attempt-outcome.ts';
import type { Experiment } from '../experiment.ts';
import type { Replayed } from './bucket-replay.ts';
import { BucketReplay } from './bucket-replay.ts';
import type { Stretch } from './log-excerpt.ts';
import { PASSED, REFUSED } from './log-excerpt.ts';

/** The token bucket that would have answered most like the log. */
export interface Inferred {
  readonly rate: PerSecond;
  readonly burst: number;
  /** `least`: a larger one fits as well, as nothing was asked after a rest that would have filled it. */
  readonly burstIs: 'told' | 'least';
  /** Attempts that were looked at, and how many of them the upstream refused, and the bucket would have. */
  readonly attempts: number;
  readonly refused: number;
  readonly wouldRefuse: number;
  /** What the bucket would have let through and the log has not, or the other way, in spans of this length, a pass of the log. */
  readonly off: number;
  readonly span: Millis;
}

export interface KnownLimit {
  /** Undefined: as the log has it. */
  readonly rate: PerSecond | undefined;
  readonly burst: number | undefined;
}

interface Tried extends Replayed {
  readonly rate: PerSecond;
  readonly burst: number;
  readonly misfit: number;
}

/** Lengths of spans, in passes: short ones show a burst, long ones a rate. */
const SPANS = [10, 100, 1000];
/** Of a log that is no longer than that, a tenth of them. */
const SHORT_LOG = 2000;
const SHORTEST_SPAN: Millis = 100;
/** Of rates, between one guess and the next, at most, and in the end. */
const NEAR = 1.02;
const FAR = 1000;
const PRECISION = 1.0005;
/** Misfits are sums of logarithms: of two with so little between them neither fits better; so much more is worse, and no chance. */
const SAME = 0.02;
const WORSE = 0.5;
/** Bursts that are tried to be precise, about. */
const REFINEMENTS = 14;

/**
 * Looks for the token bucket that would have answered as the upstream of a log. For a burst there is one rate at which it would have
 * refused as many as the log has; of those pairs, that one is taken which lets through as many as the log in spans short and long. Where
 * several do, it is the smallest burst: more than that nobody has seen.
 */
export class BucketSearch implements Experiment<Inferred | undefined> {
  readonly #known: KnownLimit;
  readonly #replay: BucketReplay;
  /** Without spans: three times as fast. */
  readonly #counting: BucketReplay;
  readonly #spans: readonly Millis[];
  readonly #counts: { readonly attempts: number; readonly passed: number; readonly refused: number };
  readonly #tried: Tried[] = [];
  /** On average, of what was looked at. */
  readonly #passed: PerSecond;
  /** Bursts to be tried. */
  readonly #ahead: number[];
  #factor: number;

  constructor(stretches: readonly Stretch[], known: KnownLimit) {
    const counts = countOf(stretches);
    this.#known = known;
    this.#counts = counts;
    this.#passed = (1000 * Math.max(1, counts.passed)) / Math.max(1, counts.time);
    const part = counts.passed < SHORT_LOG ? 0.1 : 1;
    this.#spans = SPANS.map((passes) => Math.max(SHORTEST_SPAN, (1000 * part * passes) / this.#passed));
    this.#replay = new BucketReplay(stretches, this.#spans);
    this.#counting = new BucketReplay(stretches, []);
    const canTell = known.rate === undefined ? counts.refused > 0 && counts.passed > 0 : counts.attempts > 0;
    this.#ahead = canTell ? burstsTo(known.burst, counts.passed) : [];
    this.#factor = known.burst === undefined ? Math.SQRT2 : 1;
  }

  get progress(): number {
    return this.#ahead.length === 0 ? 1 : this.#tried.length / (this.#tried.length + this.#ahead.length + REFINEMENTS);
  }

  /** Tries one burst. */
  step(): void {
    const burst = this.#ahead.shift();
    if (burst === undefined) return;
    this.#try(burst);
    if (this.#ahead.length === 0) this.#refine();
  }

  result(): Inferred | undefined {
    const best = this.#best();
    if (best === undefined) return undefined;
    const { rate, burst, refused, off } = best;
    const { attempts, passed } = this.#counts;
    return {
      rate: this.#known.rate ?? Number(rate.toPrecision(4)),
      burst,
      burstIs: this.#isTold(best) ? 'told' : 'least',
      attempts,
      refused: this.#counts.refused,
      wouldRefuse: refused,
      off: passed === 0 ? 0 : (off[1] ?? 0) / passed,
      span: this.#spans[1] ?? 0,
    };
  }

  /** The smallest burst of those that fit as well as any. */
  #best(): Tried | undefined {
    const least = Math.min(...this.#tried.map(({ misfit }) => misfit));
    const good = this.#tried.filter(({ misfit }) => misfit <= least + SAME);
    return good.toSorted((a, b) => a.burst - b.burst)[0];
  }

  /** Around the best, closer and closer. */
  #refine(): void {
    const best = this.#best();
    this.#factor = Math.sqrt(this.#factor);
    if (best === undefined || this.#factor < 1.004) return;
    const { burst } = best;
    const around = [Math.round(burst / this.#factor), Math.round(burst * this.#factor)];
    for (const each of around) {
      if (each >= 1 && this.#tried.every((tried) => tried.burst !== each)) this.#ahead.push(each);
    }
    if (this.#ahead.length === 0) this.#refine();
  }

  #try(burst: number): void {
    const rate = this.#known.rate ?? this.#rateFor(burst);
    const replayed = this.#replay.play(rate, burst);
    this.#tried.push({ ...replayed, rate, burst, misfit: this.#misfit(replayed) });
  }

  /** Whether any larger burst fits worse, even if the bucket was not full when the log began. */
  #isTold({ rate, burst }: Tried): boolean {
    const misfit = this.#misfit(this.#replay.play(rate, burst, false));
    const larger = this.#tried.filter((each) => each.burst >= 1.5 * burst);
    return larger.every((each) => this.#misfit(this.#replay.play(each.rate, each.burst, false)) > misfit + WORSE);
  }

  #misfit({ off }: Replayed): number {
    // What chance leaves of a fit that is perfect.
    const least = 1 + Math.sqrt(this.#counts.passed) / 10;
    return off.reduce((sum, each) => sum + Math.log(each + least), 0);
  }

  /** At which rate a bucket of that burst refuses as many as the log: the faster, the fewer. */
  #rateFor(burst: number): PerSecond {
    const { refused } = this.#counts;
    const refusesMore = (rate: PerSecond): boolean => this.#counting.play(rate, burst).refused > refused;
    const [slowest, fastest] = [this.#passed / FAR, this.#passed * FAR];
    const guess = this.#nearest(burst)?.rate ?? this.#passed;
    let [low, high, factor] = [guess, guess, NEAR];
    if (refusesMore(guess)) {
      do {
        [low, high, factor] = [high, high * factor, factor * factor];
      } while (high < fastest && refusesMore(high));
    } else {
      do {
        [low, high, factor] = [low / factor, low, factor * factor];
      } while (low > slowest && !refusesMore(low));
    }
    while (high > PRECISION * low) {
      const middle = Math.sqrt(low * high);
      if (refusesMore(middle)) low = middle;
      else high = middle;
    }
    // It refuses no more than the log, where `low` does.
    return Math.max(slowest, high);
  }

  /** Of bursts that are like it, rates are. */
  #nearest(burst: number): Tried | undefined {
    const far = (each: Tried): number => Math.abs(Math.log(each.burst / burst));
    return this.#tried.toSorted((a, b) => far(a) - far(b))[0];
  }
}

/** In powers of √2, as far as anything could have passed at once. */
function burstsTo(known: number | undefined, passed: number): number[] {
  if (known !== undefined) return [known];
  const bursts = [1];
  for (let next = 2; next < 2 * passed; next = Math.ceil(Math.SQRT2 * next)) bursts.push(next);
  return bursts;
}

/** `time`: of the stretches, in all. */
function countOf(stretches: readonly Stretch[]) {
  let [attempts, passed, refused, time] = [0, 0, 0, 0];
  for (const { at, what, count } of stretches) {
    attempts += count;
    time += (at[count - 1] ?? 0) - (at[0] ?? 0);
    for (let i = 0; i < count; i += 1) {
      if (what[i] === PASSED) passed += 1;
      else if (what[i] === REFUSED) refused += 1;
    }
  }
  return { attempts, passed, refused, time };
}
