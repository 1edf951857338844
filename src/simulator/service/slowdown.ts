import type { Millis } from '../../core/scalars.ts';
import { requireAtLeast, requirePositive } from '../limit-models/check-range.ts';

/** A time in which all work takes longer: a slower version, a noisy neighbour, pauses of a garbage collector. */
export interface Slowdown {
  /** Work takes this many times as long: ≥ 1. */
  readonly factor: number;
  /** 0 when absent. */
  readonly from?: Millis;
  /** Never when absent. */
  readonly to?: Millis;
  /** With `lasting`: slow for so long at the start of each such period. */
  readonly every?: Millis;
  readonly lasting?: Millis;
}

/** How many times as long work takes, as a function of time: a product of all slowdowns in force. */
export class Slowness {
  readonly #slowdowns: readonly Required<Slowdown>[];

  /** @throws RangeError when a number is out of its range */
  constructor(slowdowns: readonly Slowdown[]) {
    this.#slowdowns = slowdowns.map(({ factor, from = 0, to = Number.POSITIVE_INFINITY, every, lasting }) => ({
      factor: requireAtLeast(1, factor, 'factor'),
      from,
      to,
      every: every === undefined ? Number.POSITIVE_INFINITY : requirePositive(every, 'every'),
      lasting: lasting ?? Number.POSITIVE_INFINITY,
    }));
  }

  at(now: Millis): number {
    let product = 1;
    for (const { factor, from, to, every, lasting } of this.#slowdowns) {
      if (now >= from && now < to && now < periodStart(now, from, every) + lasting) product *= factor;
    }
    return product;
  }

  /** The work done in an interval ÷ its length: 1 while nothing is slowed down; at `to` if the interval has no length. */
  meanSpeed(from: Millis, to: Millis): number {
    if (from >= to) return 1 / this.at(to);
    let work = 0;
    for (let start = from; start < to; ) {
      const end = Math.min(to, this.nextChange(start));
      work += (end - start) / this.at(start);
      start = end;
    }
    return work / (to - from);
  }

  /** The first time after `now` at which `at` may change; Infinity when it does not. */
  nextChange(now: Millis): Millis {
    let next = Number.POSITIVE_INFINITY;
    for (const { from, to, every, lasting } of this.#slowdowns) {
      if (now >= to) continue;
      const start = now < from ? from : periodStart(now, from, every);
      for (const at of [start, start + lasting, start + every]) if (at > now) next = Math.min(next, at, to);
    }
    return next;
  }
}

/** The start of the period that contains `now` ≥ `from`. Every start is computed alike, so that equal times are equal. */
function periodStart(now: Millis, from: Millis, every: Millis): Millis {
  if (every === Number.POSITIVE_INFINITY) return from;
  const index = Math.floor((now - from) / every);
  const next = from + (index + 1) * every;
  return next <= now ? next : from + index * every;
}
