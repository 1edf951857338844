import type { Millis, PerSecond } from '../../core/exchange/attempt-outcome.ts';
import type { Stretch } from './log-excerpt.ts';
import { FAILED, PASSED, REFUSED } from './log-excerpt.ts';

/** What a token bucket would have made of attempts. */
export interface Replayed {
  /** How many it would have refused. */
  readonly refused: number;
  /**
   * By length of a span: what it would have let through and the log has not, or the other way, span by span, in all. Which of two
   * requests next to each other is let through is chance; how many are, is not.
   */
  readonly off: readonly number[];
}

/** As of the models of limits: times are not exact. */
const NEARLY = 1 - 1e-9;

/** Plays stretches of a log to token buckets, thousands of times: no objects, and no chance. */
export class BucketReplay {
  readonly #stretches: readonly Stretch[];
  readonly #spans: readonly Millis[];

  constructor(stretches: readonly Stretch[], spans: readonly Millis[]) {
    this.#stretches = stretches;
    this.#spans = spans;
  }

  /** @param startsFull whether the bucket is full when the log begins; else what comes before the first refusal is passed over */
  play(rate: PerSecond, burst: number, startsFull = true): Replayed {
    const perMilli = rate / 1000;
    const off = this.#spans.map(() => 0);
    const surplus = this.#spans.map(() => 0);
    const ends = this.#spans.map(() => Number.NEGATIVE_INFINITY);
    const soonest = (): Millis => Math.min(...ends);
    let refused = 0;
    let tokens = burst;
    let last = Number.NEGATIVE_INFINITY;
    let nextEnd = soonest();
    let isKnown = startsFull;
    for (const { at, what, count, isJoined } of this.#stretches) {
      isKnown &&= isJoined;
      let i = 0;
      if (!isKnown) {
        // How full the bucket is nobody knows before it is empty.
        i = what.indexOf(REFUSED);
        if (i === -1) continue;
        tokens = 0;
        last = at[i] ?? 0;
        isKnown = true;
      }
      for (; i < count; i += 1) {
        const now = at[i] ?? 0;
        if (now >= nextEnd) {
          for (const [s, span] of this.#spans.entries()) {
            if (now < (ends[s] ?? 0)) continue;
            off[s] = (off[s] ?? 0) + Math.abs(surplus[s] ?? 0);
            surplus[s] = 0;
            ends[s] = (Math.floor(now / span) + 1) * span;
          }
          nextEnd = soonest();
        }
        tokens = Math.min(burst, tokens + (now - last) * perMilli);
        last = now;
        const kind = what[i];
        const passes = tokens >= NEARLY;
        if (passes) tokens = Math.max(0, tokens - 1);
        else if (kind !== FAILED) refused += 1;
        if (kind === FAILED || passes === (kind === PASSED)) continue;
        for (let s = 0; s < surplus.length; s += 1) surplus[s] = (surplus[s] ?? 0) + (passes ? 1 : -1);
      }
    }
    return { refused, off: off.map((sum, s) => sum + Math.abs(surplus[s] ?? 0)) };
  }
}
