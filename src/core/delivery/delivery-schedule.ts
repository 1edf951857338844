import type { BackOffStrategy, Band } from '../backoff/strategies.ts';
import type { Millis, Random } from '../scalars.ts';

/** When a delivery that is not acknowledged is sent again. Stateless: all that a store keeps is the number of attempts. */
export interface DeliverySchedule {
  /**
   * The distribution of the delay before retry `n` (from 0), which begins as the attempt before it ends; undefined if there is no such
   * retry, whatever the time.
   */
  band(n: number): Band | undefined;
  /** Draws a delay from `band(n)`. */
  delay(n: number, random: Random): Millis | undefined;
  /** From the beginning of the first attempt: a `Retry-After` is kept up to here. */
  readonly total: Millis;
  /** Whether no attempt begins after `total`, whatever the delays. A table ends with its last delay instead. */
  readonly endsAfterTotal: boolean;
}

/** What is known of a delivery as an attempt ends without an acknowledgement. Times are on one clock. */
export interface DeliveryProgress {
  /** Completed ones, ≥ 1. */
  readonly attempts: number;
  /** When the first attempt of this schedule began. */
  readonly firstAt: Millis;
  /** When the last attempt ended. */
  readonly lastEndedAt: Millis;
  /** What the receiver asked for, from `lastEndedAt` on; undefined: nothing. */
  readonly retryAfterMs: Millis | undefined;
}

/** The shortest delay between two attempts, whatever the backoff says: many strategies draw anything from 0. */
export const MIN_DELIVERY_DELAY: Millis = 1000;

/**
 * How many delays before retry `n` are drawn to derive its own, for strategies whose delays depend on each other. A delay of
 * `decorrelated-jitter` is at most 3^65 base intervals after that many, which is more than any cap; one of `decorrelated-jitter-v2`
 * depends on the one before it alone. So the distribution is that of the whole chain.
 */
const REPLAYED_DELAYS = 64;

/** Delays by a backoff, until the next attempt would begin more than `total` after the first, or the strategy gives up. */
export function makeBackOffSchedule(backOff: BackOffStrategy, total: Millis): DeliverySchedule {
  return {
    band(n) {
      const band = backOff.band(n);
      return band === undefined
        ? undefined
        : { min: atLeast(band.min), mean: atLeast(band.mean), max: atLeast(band.max) };
    },
    delay(n, random) {
      const delay = drawDelay(backOff, n, random);
      return delay === undefined ? undefined : atLeast(delay);
    },
    total,
    endsAfterTotal: true,
  };
}

/** Fixed delays, each from the end of an attempt to the beginning of the next. There are as many retries as delays. */
export function makeTableSchedule(delays: readonly Millis[]): DeliverySchedule {
  return {
    band(n) {
      const delay = delays[n];
      return delay === undefined ? undefined : { min: delay, mean: delay, max: delay };
    },
    delay: (n) => delays[n],
    total: delays.reduce((sum, delay) => sum + delay, 0),
    endsAfterTotal: false,
  };
}

/**
 * When the next attempt begins; undefined if the schedule is used up.
 *
 * The later of the planned time and the receiver's `Retry-After` counts. A `Retry-After` beyond the end of the schedule postpones the
 * attempt to that end only: one long `Retry-After` on the first day must not end a schedule of three days. With a backoff, that attempt is
 * the last one. The delays of a table that are left follow it.
 */
export function nextAttemptAt(
  schedule: DeliverySchedule,
  { attempts, firstAt, lastEndedAt, retryAfterMs = 0 }: DeliveryProgress,
  random: Random,
): Millis | undefined {
  const delay = schedule.delay(attempts - 1, random);
  if (delay === undefined) return undefined;
  const end = firstAt + schedule.total;
  const planned = lastEndedAt + delay;
  if (schedule.endsAfterTotal && planned > end) return undefined;
  return Math.max(planned, Math.min(lastEndedAt + retryAfterMs, end));
}

function atLeast(delay: Millis): Millis {
  return Math.max(MIN_DELIVERY_DELAY, delay);
}

/** The delay before retry `n`, without what the strategy remembers of earlier ones: if it remembers any, they are drawn again. */
function drawDelay(backOff: BackOffStrategy, n: number, random: Random): Millis | undefined {
  const step = backOff.next(n, 0, random);
  // A strategy without a memory returns what it got.
  if (n === 0 || step === undefined || step.memory === 0) return step?.delay;
  let memory = 0;
  for (let i = Math.max(0, n - REPLAYED_DELAYS); i < n; i += 1) memory = backOff.next(i, memory, random)?.memory ?? 0;
  return backOff.next(n, memory, random)?.delay;
}
