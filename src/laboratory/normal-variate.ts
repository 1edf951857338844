import type { Random } from '../core/exchange/attempt-outcome.ts';

/** A normal variate: Box, Muller (1958), of which the second is not kept, so that each call draws twice. */
export function normal(mean: number, deviation: number, random: Random): number {
  return mean + deviation * Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}
