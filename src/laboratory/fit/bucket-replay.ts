import type { Millis, PerSecond } from '../../core/scalars.ts';
import type { LogSegment } from './log-excerpt.ts';
import { FAILED, PASSED, REFUSED } from './log-excerpt.ts';

/** How a token bucket would have answered the attempts. */
export interface BucketReplayResult {
  /** Attempts it would have refused. */
  readonly refused: number;
  /**
   * By length of a span: the sum over spans of the difference between accepted attempts of the bucket and of the log. Which of two
   * neighbouring requests is accepted is random; how many are is not.
   */
  readonly deviations: readonly number[];
}

/** The tolerance of the limit models: times are not exact. */
const ONE_TOKEN = 1 - 1e-9;

/** Replays stretches of a log to token buckets, thousands of times: without objects and randomness. */
export class BucketReplay {
  readonly #stretches: readonly LogSegment[];
  readonly #spans: readonly Millis[];

  constructor(stretches: readonly LogSegment[], spans: readonly Millis[]) {
    this.#stretches = stretches;
    this.#spans = spans;
  }

  /** @param startsFull whether the bucket is full when the log begins; else attempts before the first refusal are ignored */
  replay(rate: PerSecond, burst: number, startsFull = true): BucketReplayResult {
    const perMilli = rate / 1000;
    const deviations = this.#spans.map(() => 0);
    const surplus = this.#spans.map(() => 0);
    const ends = this.#spans.map(() => Number.NEGATIVE_INFINITY);
    const soonest = (): Millis => Math.min(...ends);
    let refused = 0;
    let tokens = burst;
    let last = Number.NEGATIVE_INFINITY;
    let nextEnd = soonest();
    let isLevelKnown = startsFull;
    for (const { at, outcomes, count, isContiguous } of this.#stretches) {
      isLevelKnown &&= isContiguous;
      let i = 0;
      if (!isLevelKnown) {
        // The level of the bucket is unknown until it is empty.
        i = outcomes.indexOf(REFUSED);
        if (i === -1) continue;
        tokens = 0;
        last = at[i] ?? 0;
        isLevelKnown = true;
      }
      for (; i < count; i += 1) {
        const now = at[i] ?? 0;
        if (now >= nextEnd) {
          for (const [s, span] of this.#spans.entries()) {
            if (now < (ends[s] ?? 0)) continue;
            deviations[s] = (deviations[s] ?? 0) + Math.abs(surplus[s] ?? 0);
            surplus[s] = 0;
            ends[s] = (Math.floor(now / span) + 1) * span;
          }
          nextEnd = soonest();
        }
        tokens = Math.min(burst, tokens + (now - last) * perMilli);
        last = now;
        const kind = outcomes[i];
        const passes = tokens >= ONE_TOKEN;
        if (passes) tokens = Math.max(0, tokens - 1);
        else if (kind !== FAILED) refused += 1;
        if (kind === FAILED || passes === (kind === PASSED)) continue;
        for (let s = 0; s < surplus.length; s += 1) surplus[s] = (surplus[s] ?? 0) + (passes ? 1 : -1);
      }
    }
    return { refused, deviations: deviations.map((sum, s) => sum + Math.abs(surplus[s] ?? 0)) };
  }
}
