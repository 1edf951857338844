import type { PerSecond } from '../../../core/scalars.ts';
import { REFUSED } from '../log-excerpt.ts';
import type { AttemptSeries } from './attempt-series.ts';
import type { LimitFit } from './limit-fit.ts';
import { logLikelihood, OPEN, SHUT, tabulate, UNKNOWN } from './prediction-table.ts';

/** The tolerance of the limit models: times are not exact. */
const ONE_TOKEN = 1 - 1e-9;
/** Steps of the search around the bucket that it begins with, as parts of the rate and of the burst. */
const STEPS = [0.08, 0.04, 0.02, 0.01, 0.005, 0.0025, 0.001];
const MAX_MOVES = 12;

interface Bucket {
  readonly rate: PerSecond;
  readonly burst: number;
}

interface ScoredBucket extends Bucket {
  readonly likelihood: number;
}

/**
 * The token bucket that predicts a log best, near another one.
 * @param near the bucket that reproduces the log's counts (`BucketSearch`)
 */
export function fitTokenBucket(series: AttemptSeries, near: Bucket): LimitFit {
  const predictions = new Uint8Array(series.count);
  const score = (bucket: Bucket): ScoredBucket => {
    predictBucket(series, bucket, predictions);
    return { ...bucket, likelihood: logLikelihood(tabulate(series, predictions)) };
  };
  let best = score(near);
  for (const step of STEPS) {
    for (let moves = 0; moves < MAX_MOVES; moves += 1) {
      const better = neighbours(best, step)
        .map(score)
        .find(({ likelihood }) => likelihood > best.likelihood);
      if (better === undefined) break;
      best = better;
    }
  }
  const { burst } = best;
  const rate = Number(best.rate.toPrecision(4));
  predictBucket(series, { rate, burst }, predictions);
  return { limit: { kind: 'token-bucket', rate, burst }, predictions };
}

function neighbours({ rate, burst }: Bucket, step: number): Bucket[] {
  const tokens = Math.max(1, Math.round(step * burst));
  return [
    { rate: rate * (1 + step), burst },
    { rate: rate / (1 + step), burst },
    { rate, burst: burst + tokens },
    ...(burst > tokens ? [{ rate, burst: burst - tokens }] : []),
  ];
}

/**
 * Predicts each response from the ones before it. The level follows from them: an accepted attempt takes a token, and after a refused
 * one there was less than a token. It is unknown until the first refusal.
 */
function predictBucket(
  { count, at, outcomes, gaps }: AttemptSeries,
  { rate, burst }: Bucket,
  predictions: Uint8Array,
): void {
  let [tokens, last, nextGap, isKnown] = [0, 0, 0, false];
  for (let i = 0; i < count; i += 1) {
    const [now, isRefused] = [at[i] ?? 0, outcomes[i] === REFUSED];
    if (i === gaps[nextGap]) {
      nextGap += 1;
      isKnown = false;
    }
    if (isKnown) {
      tokens = Math.min(burst, tokens + ((now - last) * rate) / 1000);
      predictions[i] = tokens >= ONE_TOKEN ? OPEN : SHUT;
      tokens = isRefused ? Math.min(tokens, ONE_TOKEN) : Math.max(0, tokens - 1);
    } else {
      predictions[i] = UNKNOWN;
      isKnown = isRefused;
      tokens = 0;
    }
    last = now;
  }
}
