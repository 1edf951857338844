import type { LimitRef } from '../limits/limit-ref.ts';
import { boundCost, type CostRule } from './cost-rule.ts';

/** What a limit had counted when a request was sent. */
export interface SendCounts {
  /** Requests in flight, itself included. */
  readonly inFlightAtSend: number;
  /** The units of all sends up to this one. */
  readonly sentUnits: number;
}

/** What one request costs at one limit. */
export interface LimitCost extends SendCounts {
  readonly rule: CostRule;
  /** What each attempt is charged, in units; ≥ 0 and finite. */
  charged: number;
  /** What the history of the limit counts for the last attempt, in units. */
  counted: number;
  /** See `SendCounts`. */
  inFlightAtSend: number;
  sentUnits: number;
  /** The `forgivenCount` of the queue that counted the attempt in its order; undefined if the attempt delayed no turn of its client. */
  countedAt: number | undefined;
  /** What the response to the last attempt named, in units; undefined if it named nothing. */
  actual: number | undefined;
  /** The response to the attempt under way may still name the cost. */
  isOpen: boolean;
  /** The attempt has taken its tokens: in observe mode, one that would have been refused has not. */
  isPaced: boolean;
}

/** The costs of one request at those of its limits whose requests do not cost one unit. */
export class RequestCosts {
  readonly route: string;
  readonly costs: readonly LimitCost[];

  /** @param declare the cost that the request names for a rule, in units; undefined if it names none */
  constructor(route: string, rules: readonly CostRule[], declare: (rule: CostRule) => number | undefined) {
    this.route = route;
    this.costs = rules.map((rule) => {
      const charged = boundCost(declare(rule), rule) ?? rule.expected;
      return {
        rule,
        charged,
        counted: charged,
        inFlightAtSend: 0,
        sentUnits: 0,
        countedAt: undefined,
        actual: undefined,
        isOpen: false,
        isPaced: false,
      };
    });
  }

  /** Whether the response to the attempt under way may still name a cost. */
  get hasOpen(): boolean {
    return this.costs.some(({ isOpen }) => isOpen);
  }

  /** The request names a cost at a limit, in units. To be called before it asks for admission. */
  declare(limit: string, named: number | undefined): void {
    const cost = this.find(limit);
    if (cost !== undefined) cost.charged = boundCost(named, cost.rule) ?? cost.charged;
  }

  find(limit: string): LimitCost | undefined {
    for (const cost of this.costs) if (cost.rule.limit === limit) return cost;
    return undefined;
  }

  /** The attempt is being sent. @param limitRefs its limits: a rule of another one does not apply */
  onSent(limitRefs: readonly LimitRef[]): void {
    for (const cost of this.costs) {
      cost.isOpen = cost.rule.isSettled && limitRefs.some(({ nested }) => nested === cost.rule.limit);
      cost.actual = undefined;
    }
  }

  /** The attempt asks for admission: it has delayed no turn yet. */
  onAsked(): void {
    for (const cost of this.costs) cost.countedAt = undefined;
  }

  /** The attempt is sent without tokens. An earlier one may have taken some. */
  onUnpaced(): void {
    for (const cost of this.costs) cost.isPaced = false;
  }

  /** No response will name the cost of the attempt: its charge stands. */
  close(): void {
    for (const cost of this.costs) cost.isOpen = false;
  }
}
