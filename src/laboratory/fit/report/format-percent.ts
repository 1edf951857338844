/** Of a part, in two digits: `39 %`, `0.02 %`. */
export function percent(part: number): string {
  return `${Number((100 * part).toPrecision(2))} %`;
}
