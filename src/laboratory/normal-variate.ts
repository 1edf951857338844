import type { Random } from '../core/scalars.ts';

/** A normal variate: Box, Muller (1958), without keeping the second value, so each call draws twice. */
export function drawNormal(mean: number, deviation: number, random: Random): number {
  return mean + deviation * Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}
