/** What requests cost at one limit, in the units that its upstream counts there. */
export interface CostRule {
  /** The name of the nested limit; empty for the limit of the upstream. */
  readonly limit: string;
  /** The charge of a request that names no cost, in [min, max]. */
  readonly expected: number;
  /** The bounds of what a request or a response may name; 0 ≤ min ≤ max, finite. */
  readonly min: number;
  readonly max: number;
  /** Responses name the cost, and correct the charge. */
  readonly isSettled: boolean;
  /** What a unit is: see `RateSettings`. A limit whose unit is another one by now does not count the cost. */
  readonly unit?: string | undefined;
}

/** The costs that a response names, in units, by the name of the limit. Undefined or absent where it names none. */
export type NamedCosts = ReadonlyMap<string, number | undefined>;

/** Bounds a cost that a request or a response names; undefined if it is no number, or below 0. */
export function boundCost(named: number | undefined, { min, max }: CostRule): number | undefined {
  if (named === undefined || !(named >= 0)) return undefined;
  return Math.min(max, Math.max(min, named));
}
