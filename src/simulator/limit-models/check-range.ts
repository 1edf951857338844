/** @throws RangeError unless `value` is finite and not below `min` */
export function requireAtLeast(min: number, value: number, name: string): number {
  if (Number.isFinite(value) && value >= min) return value;
  throw new RangeError(`${name} must be a number of at least ${min}, not ${value}`);
}

/** @throws RangeError unless `value` is finite and above 0 */
export function requirePositive(value: number, name: string): number {
  if (Number.isFinite(value) && value > 0) return value;
  throw new RangeError(`${name} must be a number above 0, not ${value}`);
}
