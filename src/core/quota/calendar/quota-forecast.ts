import type { Millis } from '../../scalars.ts';
import type { CalendarQuotaSettings, Instant } from './calendar-quota.ts';
import { ConsumptionRate } from './consumption-rate.ts';
import { type EpochMillis, nominalLength, type QuotaPeriod } from './quota-period.ts';

/** A forecast of less than this share of a period before its end is within the error of the estimate. */
const FORECAST_MARGIN = 0.02;
const AVERAGING_SHARE = 1 / 24;
const MIN_AVERAGING_TIME: Millis = 60_000;
const MAX_AVERAGING_TIME: Millis = 6 * 3_600_000;

/** When a quota will be used up, by the recent rate of its requests. */
export class QuotaForecast {
  readonly #consumption: ConsumptionRate;

  constructor(period: QuotaPeriod) {
    const averagingTime = AVERAGING_SHARE * nominalLength(period);
    this.#consumption = new ConsumptionRate(Math.min(Math.max(averagingTime, MIN_AVERAGING_TIME), MAX_AVERAGING_TIME));
  }

  onRequests(count: number, now: Millis): void {
    this.#consumption.onRequests(count, now);
  }

  /**
   * Infinity if that is not before the end of the period. An even pace prevents it. In a rolling period, requests also cease to count
   * meanwhile: the rate has to exceed the mean.
   * @param left without the reserve
   * @param end of the period; undefined if it rolls
   */
  exhaustedAt(
    { pace, period, limit }: CalendarQuotaSettings,
    left: number,
    end: EpochMillis | undefined,
    { now, at }: Instant,
  ): EpochMillis {
    if (pace === 'even') return Number.POSITIVE_INFINITY;
    const perMilli = this.#consumption.perMilli(now);
    const returned = period.kind === 'rolling' ? limit / period.length : 0;
    if (perMilli <= returned) return Number.POSITIVE_INFINITY;
    const exhaustedAt = at + left / (perMilli - returned);
    const length = nominalLength(period);
    return exhaustedAt < (end ?? at + length) - FORECAST_MARGIN * length ? exhaustedAt : Number.POSITIVE_INFINITY;
  }
}
