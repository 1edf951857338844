/**
 * Fails unless `least` ≤ `value` ≤ `most`; NaN fails. For checks after each step of a long run, where `expect` would take more time
 * than the steps.
 */
export function expectWithin(value: number, least: number, most: number): void {
  if (!(value >= least && value <= most)) throw new RangeError(`${value} is not within ${least} and ${most}`);
}
