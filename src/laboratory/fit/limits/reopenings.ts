import { PASSED, REFUSED } from '../log-excerpt.ts';
import type { AttemptSeries } from './attempt-series.ts';

/** Times within which refusals ended: from the last refused attempt to the accepted one after it. */
export interface Reopenings {
  readonly from: Float64Array;
  readonly to: Float64Array;
  readonly count: number;
}

export function listReopenings({ count, at, outcomes, gaps }: AttemptSeries): Reopenings {
  const [from, to] = [new Float64Array(count), new Float64Array(count)];
  let [size, last, nextGap] = [0, -1, 0];
  for (let i = 0; i < count; i += 1) {
    if (i === gaps[nextGap]) {
      nextGap += 1;
      last = -1;
    }
    const outcome = outcomes[i];
    if (outcome === REFUSED) {
      last = i;
    } else if (outcome === PASSED) {
      if (last >= 0) {
        from[size] = at[last] ?? 0;
        to[size] = at[i] ?? 0;
        size += 1;
      }
      last = -1;
    }
  }
  return { from: from.subarray(0, size), to: to.subarray(0, size), count: size };
}
