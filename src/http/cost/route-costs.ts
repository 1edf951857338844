import type { CostRule } from '../../core/cost/cost-rule.ts';

/** Member names in turn. */
export type CostFieldPath = readonly string[];

/** Where a message names a cost; of several fields, the cost is their sum. */
export type CostSource =
  /** In lower case. */
  | { readonly kind: 'header'; readonly name: string }
  | { readonly kind: 'json'; readonly fields: readonly CostFieldPath[] };

/** The fields that say how full a bucket of units is. */
export interface BucketFields {
  readonly available: CostFieldPath;
  readonly limit: CostFieldPath;
  /** In units a second. */
  readonly refillRate: CostFieldPath;
}

/** What the requests of a route cost at one limit, and where that is read. */
export interface RouteCost {
  readonly rule: CostRule;
  readonly byMethod: ReadonlyMap<string, number>;
  readonly request: CostSource | undefined;
  readonly response: CostSource | undefined;
  readonly bucket: BucketFields | undefined;
}

/** The costs of a route at those of its limits whose requests do not cost one unit. */
export interface RouteCosts {
  readonly costs: readonly RouteCost[];
  readonly rules: readonly CostRule[];
}
