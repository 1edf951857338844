import type { LimitState } from '../../core/events/proxy-events.ts';
import type { Millis, PerSecond } from '../../core/exchange/attempt-outcome.ts';

/** What came of a run, its warm-up left out. Shares are in [0, 1] but for `waste`. */
export interface Report {
  readonly scenario: string;
  readonly seed: number;
  /** How long was counted. */
  readonly span: Millis;
  /** Successes within the deadline ÷ what the hidden limit, or the demand if that is less, would have allowed. */
  readonly goodput: number;
  /** Answers of the upstream that were 429 or 5xx ÷ successes. */
  readonly waste: number;
  /** Requests that ended neither in a success nor in a refusal of ours ÷ requests that ended. */
  readonly failures: number;
  /** Requests that we refused ÷ requests that ended. */
  readonly refused: number;
  /** What was added to the time that the last attempt took, of successes. */
  readonly latency: Quantiles;
  /** Jain's index of successes ÷ weight, over all clients: 1 when all are served alike. */
  readonly jain: number;
  /** Standard deviation of the rate ÷ its mean; 0 while it is not limited. */
  readonly oscillation: number;
  readonly counts: Counts;
  readonly groups: readonly GroupReport[];
  /** From the beginning of the run, warm-up and all. */
  readonly series: readonly Sample[];
}

export interface Quantiles {
  readonly p50: Millis;
  readonly p99: Millis;
}

export interface Counts {
  /** What clients wanted to send, those included who waited as they were told. */
  readonly offered: number;
  readonly successes: number;
  readonly refused: number;
  readonly failed: number;
  /** Attempts that reached the upstream, and those of them that it answered with 429 or 5xx. */
  readonly sends: number;
  readonly wasted: number;
}

export interface GroupReport {
  readonly name: string;
  readonly offered: number;
  readonly successes: number;
  /** Successes ÷ what was offered. */
  readonly served: number;
  /** Its successes ÷ all successes. */
  readonly share: number;
  readonly latency: Quantiles;
  readonly jain: number;
}

/** A stretch of time that ends at `at`. Rates are of the stretch. */
export interface Sample {
  readonly at: Millis;
  /** What the upstream would let through. */
  readonly limit: PerSecond;
  /** What the proxies would send, all together; Infinity while nothing limits it. */
  readonly rate: PerSecond;
  /** Of the first proxy. */
  readonly state: LimitState;
  readonly offered: PerSecond;
  readonly sent: PerSecond;
  readonly accepted: PerSecond;
  readonly wasted: PerSecond;
  readonly queued: number;
  /** Successes by group of clients, in the order of the scenario. */
  readonly served: readonly PerSecond[];
}

/** Jain, Chiu and Hawe, DEC-TR-301 (1984): (Σx)² ÷ (n·Σx²); 1 when there is nothing to share. */
export function jainIndex(shares: Iterable<number>): number {
  let n = 0;
  let sum = 0;
  let squares = 0;
  for (const share of shares) {
    n += 1;
    sum += share;
    squares += share * share;
  }
  return squares === 0 ? 1 : (sum * sum) / (n * squares);
}

/**
 * How long after `from` a run was settled: the start of the first 3 s in which the upstream accepted at least 0.9 of
 * what it or the demand allowed, and turned away at most 5 % of what was sent; counted until `to`.
 * @returns undefined when it never was
 */
export function settlingTime(series: readonly Sample[], from: Millis, to: Millis): Millis | undefined {
  const samples = series.filter(({ at }) => at > from && at <= to);
  const first = samples[0];
  const second = samples[1];
  if (first === undefined || second === undefined) return undefined;
  const tick = second.at - first.at;
  const wide = Math.round(3000 / tick);
  for (let start = 0; start + wide <= samples.length; start += 1) {
    const stretch = samples.slice(start, start + wide);
    const total = (of: (sample: Sample) => number): number => stretch.reduce((sum, sample) => sum + of(sample), 0);
    const allowed = Math.min(
      total(({ limit }) => limit),
      total(({ offered }) => offered),
    );
    const isUsed = total(({ accepted }) => accepted) >= 0.9 * allowed;
    if (isUsed && total(({ wasted }) => wasted) <= 0.05 * total(({ sent }) => sent)) return start * tick;
  }
  return undefined;
}
