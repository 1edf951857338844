/**
 * The level of a max-min fair division (water-filling): the sum of min(amount, level) is what is available. Amounts at or below the
 * level are granted in full. Source: D. Bertsekas, R. Gallager: Data Networks (1992), section 6.5.2.
 * @param amounts at least 0
 * @param available at least 0
 * @returns Infinity if more is available than all amounts together
 */
export function fairLevel(amounts: Iterable<number>, available: number): number {
  const ascending = Float64Array.from(amounts).toSorted();
  let left = available;
  let others = ascending.length;
  for (const amount of ascending) {
    if (amount * others >= left) return left / others;
    left -= amount;
    others -= 1;
  }
  return Number.POSITIVE_INFINITY;
}
