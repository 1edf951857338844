/** Formats a share with two digits: `39 %`, `0.02 %`. */
export function formatPercent(part: number): string {
  return `${Number((100 * part).toPrecision(2))} %`;
}
