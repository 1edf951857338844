import type { RequestCounts } from '../../telemetry/metrics/request-counts.ts';
import { ZERO_REQUEST_COUNTS, ZERO_UPSTREAM_COUNTS } from '../../telemetry/metrics/request-counts.ts';
import type { Millis } from '../../core/scalars.ts';

/** Shortest window of a rate. A little below a second, because timers may fire early. */
const MIN_WINDOW: Millis = 900;
/** Older readings are discarded. */
const MAX_READING_AGE: Millis = 60_000;
/** Window of quantiles and of rare events, as far as readings reach back: a second has too few of them. */
const LONG_WINDOW: Millis = 10_000;

interface CounterReading {
  readonly at: Millis;
  readonly counts: RequestCounts;
}

/** Two readings whose difference gives rates, and an older one for quantiles. */
export interface CounterWindow {
  readonly seconds: number;
  readonly before: RequestCounts;
  readonly after: RequestCounts;
  /** The length of the long window, and the counts at its start. */
  readonly longSeconds: number;
  readonly longBefore: RequestCounts;
}

/** Computes rates from counters by keeping the last readings. Counters are read only on request. */
export class CounterRates {
  #readings: readonly CounterReading[] = [];

  record(counts: RequestCounts, at: Millis): void {
    const fresh = this.#readings.filter((reading) => at - reading.at < MAX_READING_AGE);
    const recent = fresh.filter((reading) => at - reading.at <= LONG_WINDOW);
    const last = fresh.at(-1);
    // Concurrent requests share a reading.
    if (last !== undefined && at - last.at < MIN_WINDOW / 2 && fresh.length > 1) return;
    this.#readings = [...(recent.length > 0 ? recent : fresh.slice(-1)), { at, counts }];
  }

  /** Milliseconds until a window of the minimum length exists; 0 if there is one. */
  timeUntilReady(now: Millis): Millis {
    const first = this.#readings.find((reading) => now - reading.at < MAX_READING_AGE);
    return first === undefined ? MIN_WINDOW : Math.max(0, first.at + MIN_WINDOW - now);
  }

  /** The shortest window that ends with these counts; its length is 0 without an earlier reading. */
  window(after: RequestCounts, now: Millis): CounterWindow {
    const before = this.#readings.findLast((reading) => now - reading.at >= MIN_WINDOW) ?? this.#readings[0];
    const long = this.#readings.find((reading) => now - reading.at <= LONG_WINDOW) ?? before;
    return {
      seconds: before === undefined ? 0 : (now - before.at) / 1000,
      before: before?.counts ?? ZERO_REQUEST_COUNTS,
      after,
      longSeconds: long === undefined ? 0 : (now - long.at) / 1000,
      longBefore: long?.counts ?? ZERO_REQUEST_COUNTS,
    };
  }
}

/** The share of failed attempts by upstream. It stays while an upstream is idle: no traffic is no sign of recovery. */
export class FailedShares {
  readonly #last = new Map<string, number>();

  /** The share in the long window, or in the last one that had attempts; undefined before the first attempt. */
  update(upstream: string, { longBefore, after }: CounterWindow): number | undefined {
    const now = after.upstreams.get(upstream) ?? ZERO_UPSTREAM_COUNTS;
    const before = longBefore.upstreams.get(upstream) ?? ZERO_UPSTREAM_COUNTS;
    const share = shareOf(now.failed - before.failed, now.sent - before.sent) ?? this.#last.get(upstream);
    const known = share ?? shareOf(now.failed, now.sent);
    if (known !== undefined) this.#last.set(upstream, known);
    return known;
  }
}

/** In [0, 1]; undefined if there are none. */
function shareOf(part: number, all: number): number | undefined {
  return all <= 0 ? undefined : Math.min(1, Math.max(0, part) / all);
}

/** Rate per second; 0 if the window has no length or if the counter fell because a process ended. */
export function ratePerSecond({ seconds }: Pick<CounterWindow, 'seconds'>, before: number, after: number): number {
  return seconds <= 0 ? 0 : roundToMilli(Math.max(0, after - before) / seconds);
}

/** Rounds to three decimals. */
export function roundToMilli(value: number): number {
  return Math.round(value * 1000) / 1000;
}
