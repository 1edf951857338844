import { boundCost, type CostRule } from './cost-rule.ts';
import type { ExpectedCosts } from './expected-cost.ts';

/** What one request costs at one limit. */
export interface LimitCost {
  readonly rule: CostRule;
  /** What the request itself names, in units and within the bounds of the rule; undefined if it names nothing. */
  declared: number | undefined;
  /** What the attempt under way was charged, in units. */
  charged: number;
  /** The last known cost of an attempt, in units; undefined before its response names one. */
  actual: number | undefined;
  /** The attempt was charged, and its cost is not known yet. */
  isOpen: boolean;
}

/** The costs of one request at those of its limits whose requests do not cost one unit. */
export class RequestCosts {
  readonly route: string;
  readonly costs: readonly LimitCost[];

  /** @param declare the cost that the request names for a rule, in units; undefined if it names none */
  constructor(route: string, rules: readonly CostRule[], declare: (rule: CostRule) => number | undefined) {
    this.route = route;
    this.costs = rules.map((rule) => {
      const declared = boundCost(declare(rule), rule);
      return { rule, declared, charged: declared ?? rule.expected, actual: undefined, isOpen: false };
    });
  }

  /** Whether the cost of the attempt under way is not known yet, at a limit that responses name it for. */
  get hasOpen(): boolean {
    return this.costs.some(({ isOpen }) => isOpen);
  }

  /** The request names a cost at a limit, in units. To be called before it asks for admission. */
  declare(limit: string, named: number | undefined): void {
    const cost = this.find(limit);
    if (cost === undefined) return;
    cost.declared = boundCost(named, cost.rule) ?? cost.declared;
    cost.charged = cost.declared ?? cost.charged;
  }

  find(limit: string): LimitCost | undefined {
    for (const cost of this.costs) if (cost.rule.limit === limit) return cost;
    return undefined;
  }

  /** The charge at a limit, in units; ≥ 0 and finite. */
  at(limit: string): number {
    return this.find(limit)?.charged ?? 1;
  }

  /**
   * Chooses the charges of the next attempt: the mean of what such requests of the client have cost. Their spread is no part of the
   * charge: charging it as well, until the response, kept a part of the limit unused.
   */
  estimate(expected: ExpectedCosts, client: string): void {
    for (const cost of this.costs) {
      const { rule, declared } = cost;
      if (declared !== undefined || !rule.isSettled) continue;
      cost.charged = boundCost(expected.mean(this.route, rule.limit, client), rule) ?? rule.expected;
    }
  }

  /** The attempt is being sent. */
  onSent(): void {
    for (const cost of this.costs) {
      cost.isOpen = cost.rule.isSettled;
      cost.actual = undefined;
    }
  }
}
