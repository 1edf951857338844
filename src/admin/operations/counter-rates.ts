import type { Counts } from '../../telemetry/metrics/request-counts.ts';
import { NO_COUNTS } from '../../telemetry/metrics/request-counts.ts';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';

/** Rates are of no less than this; a timer may be a little early. */
const SHORTEST: Millis = 900;
/** A reading that is older than this says nothing of now. */
const LONGEST: Millis = 60_000;
/** Quantiles are of so long, where it was watched for so long: of a second there are few values. */
const OF_QUANTILES: Millis = 10_000;

interface Reading {
  readonly at: Millis;
  readonly counts: Counts;
}

/** The difference of two readings. */
export interface Span {
  readonly seconds: number;
  readonly before: Counts;
  readonly after: Counts;
  /** What had been counted when the time began that quantiles are of. */
  readonly longBefore: Counts;
}

/** Turns what is counted into rates, by keeping the last readings. Nothing is read unless somebody looks. */
export class Pace {
  #readings: readonly Reading[] = [];

  note(counts: Counts, at: Millis): void {
    const fresh = this.#readings.filter((reading) => at - reading.at < LONGEST);
    const recent = fresh.filter((reading) => at - reading.at <= OF_QUANTILES);
    const last = fresh.at(-1);
    // Many who look at once need no reading each.
    if (last !== undefined && at - last.at < SHORTEST / 2 && fresh.length > 1) return;
    this.#readings = [...(recent.length > 0 ? recent : fresh.slice(-1)), { at, counts }];
  }

  /** How long until there is a span that ends then; 0 when there is one. */
  lacks(now: Millis): Millis {
    const first = this.#readings.find((reading) => now - reading.at < LONGEST);
    return first === undefined ? SHORTEST : Math.max(0, first.at + SHORTEST - now);
  }

  /** The shortest span that ends with these counts; one of no length where there is no reading before. */
  span(after: Counts, now: Millis): Span {
    const before = this.#readings.findLast((reading) => now - reading.at >= SHORTEST) ?? this.#readings[0];
    const long = this.#readings.find((reading) => now - reading.at <= OF_QUANTILES) ?? before;
    return {
      seconds: before === undefined ? 0 : (now - before.at) / 1000,
      before: before?.counts ?? NO_COUNTS,
      after,
      longBefore: long?.counts ?? NO_COUNTS,
    };
  }
}

/** A second; 0 where the span has no length, or a process that had counted is gone. */
export function perSecond({ seconds }: Span, before: number, after: number): number {
  return seconds <= 0 ? 0 : round(Math.max(0, after - before) / seconds);
}

/** For people and for the wire. */
export function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}
