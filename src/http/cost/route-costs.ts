import type { CostRule } from '../../core/cost/cost-rule.ts';

/** Member names in turn. */
export type CostFieldPath = readonly string[];

/** In lower case. */
interface CostHeader {
  readonly kind: 'header';
  readonly name: string;
}

export type RequestCostSource = CostHeader | { readonly kind: 'json'; readonly field: CostFieldPath };

/** Of several fields, the cost is their sum. */
export type ResponseCostSource = CostHeader | { readonly kind: 'json'; readonly fields: readonly CostFieldPath[] };

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
  readonly request: RequestCostSource | undefined;
  readonly response: ResponseCostSource | undefined;
  readonly bucket: BucketFields | undefined;
}

/** The costs of a route at those of its limits whose requests do not cost one unit. */
export interface RouteCosts {
  readonly costs: readonly RouteCost[];
  readonly rules: readonly CostRule[];
}
