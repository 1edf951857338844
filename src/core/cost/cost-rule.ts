/** What requests cost at one limit, in the units that its upstream counts there. */
export interface CostRule {
  /** The name of the nested limit; empty for the limit of the upstream. */
  readonly limit: string;
  /** The charge while nothing else is known, in [min, max]. */
  readonly expected: number;
  /** The bounds of what a request or a response may name; 0 ≤ min ≤ max, finite. */
  readonly min: number;
  readonly max: number;
  /** Responses name the cost: the charge is an estimate, and is corrected. */
  readonly isSettled: boolean;
}

/** The costs that a response names, in units, by the name of the limit. A cost that it does not name is absent. */
export type NamedCosts = ReadonlyMap<string, number>;

/** Bounds a cost that a request or a response names; undefined if it is no number, or below 0. */
export function boundCost(named: number | undefined, { min, max }: CostRule): number | undefined {
  if (named === undefined || !(named >= 0)) return undefined;
  return Math.min(max, Math.max(min, named));
}
