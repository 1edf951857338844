import type { LimitState } from '../../core/limits/limit-state.ts';
import type { Millis, PerSecond } from '../../core/scalars.ts';

/** The report of a run, without its warm-up. Shares are in [0, 1], except `waste`. */
export interface SimulationReport {
  readonly scenario: string;
  readonly seed: number;
  /** The time counted, in ms. */
  readonly span: Millis;
  /** Successes within the deadline ÷ the requests, in units where they have costs, that the hidden limit, or the demand if less, would have allowed. */
  readonly goodput: number;
  /** 429 and 5xx responses of the upstream ÷ successes. */
  readonly waste: number;
  /** Requests that ended neither in a success nor in a rejection by the proxy ÷ requests that ended. */
  readonly failures: number;
  /** Requests that the proxy rejected ÷ requests that ended. */
  readonly refused: number;
  /** The latency that the proxy added to the last attempt, of successes. */
  readonly latency: LatencyQuantiles;
  /** The time for which the upstream let the last attempt wait for others, of successes; 0 without workers. */
  readonly upstreamWait: LatencyQuantiles;
  /** Jain's fairness index of successes, in units where they have costs, ÷ weight, over all clients: 1 when all are served alike. */
  readonly jain: number;
  /** Standard deviation of the rate ÷ its mean; 0 while it is not limited. */
  readonly oscillation: number;
  readonly counts: ReportCounts;
  readonly groups: readonly GroupReport[];
  /** From the start of the run, warm-up included. */
  readonly series: readonly ReportSample[];
}

export interface LatencyQuantiles {
  readonly p50: Millis;
  readonly p99: Millis;
}

export interface ReportCounts {
  /** Requests that clients wanted to send, including those withheld to honour a Retry-After. */
  readonly offered: number;
  readonly successes: number;
  readonly refused: number;
  readonly failed: number;
  /** Attempts that reached the upstream, and those it answered with 429 or 5xx. */
  readonly sends: number;
  readonly wasted: number;
  /** Attempts that timed out while the upstream worked on them. */
  readonly abandoned: number;
}

export interface GroupReport {
  readonly name: string;
  readonly offered: number;
  readonly successes: number;
  /** Requests that the proxy rejected. */
  readonly refused: number;
  /** Of these, those beyond a quota of a class or a client. */
  readonly refusedByQuota: number;
  /** The rejections of the client with the most of them. */
  readonly mostRefused: number;
  /** Successes ÷ offered requests. */
  readonly served: number;
  /** Its successes ÷ all successes. */
  readonly share: number;
  readonly latency: LatencyQuantiles;
  readonly jain: number;
}

/** The interval that ends at `at`. Rates are means over the interval. */
export interface ReportSample {
  readonly at: Millis;
  /** Requests a second that the upstream would accept. */
  readonly limit: PerSecond;
  /** The sum of the proxies' rates; Infinity while none is limited. */
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

/** Jain, Chiu and Hawe, DEC-TR-301 (1984): (Σx)² ÷ (n·Σx²); 1 without any success. */
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
 * The time from `from` until the run had settled, in ms: until the first 3 s in which the upstream accepted at least 0.9 of
 * what its limit or the demand allowed, and rejected at most 5 % of what was sent; searched until `to`.
 * @returns undefined if it never settled
 */
export function settlingTime(series: readonly ReportSample[], from: Millis, to: Millis): Millis | undefined {
  const samples = series.filter(({ at }) => at > from && at <= to);
  const first = samples[0];
  const second = samples[1];
  if (first === undefined || second === undefined) return undefined;
  const tick = second.at - first.at;
  const windowSize = Math.round(3000 / tick);
  for (let start = 0; start + windowSize <= samples.length; start += 1) {
    const window = samples.slice(start, start + windowSize);
    const total = (of: (sample: ReportSample) => number): number => window.reduce((sum, sample) => sum + of(sample), 0);
    const allowed = Math.min(
      total(({ limit }) => limit),
      total(({ offered }) => offered),
    );
    const isUsed = total(({ accepted }) => accepted) >= 0.9 * allowed;
    if (isUsed && total(({ wasted }) => wasted) <= 0.05 * total(({ sent }) => sent)) return start * tick;
  }
  return undefined;
}
