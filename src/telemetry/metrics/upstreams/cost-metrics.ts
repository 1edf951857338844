import type { CostEvent } from '../../../core/events/cost-events.ts';
import type { MetricFamily, MetricSample } from '../exposition/metric-family.ts';

interface SettledCosts {
  readonly labels: { readonly upstream: string; readonly limit: string };
  requests: number;
  units: number;
  charged: number;
}

/** What requests have cost. A limit has series from its first settled cost on; the configuration bounds their number. */
export class CostMetrics {
  readonly #settled = new Map<string, SettledCosts>();
  readonly #unread = new Map<string, { readonly labels: Readonly<Record<string, string>>; value: number }>();

  count(event: CostEvent): void {
    if (event.type === 'cost-unread') this.#countUnread(event.upstream, event.reason);
    else this.#countSettled(event);
  }

  families(): MetricFamily[] {
    const perLimit = (value: (costs: SettledCosts) => number) => (): MetricSample[] =>
      [...this.#settled.values()].map((costs) => ({ labels: costs.labels, value: value(costs) }));
    return [
      {
        name: 'tidegate_settled_costs_total',
        help: 'Requests whose cost at a limit was read from their responses.',
        type: 'counter',
        samples: perLimit(({ requests }) => requests),
      },
      {
        name: 'tidegate_settled_cost_units_total',
        help: 'Units that these requests have cost at the limit.',
        type: 'counter',
        samples: perLimit(({ units }) => units),
      },
      {
        name: 'tidegate_charged_cost_units_total',
        help: 'Units that these requests were charged before their cost was known.',
        type: 'counter',
        samples: perLimit(({ charged }) => charged),
      },
      {
        name: 'tidegate_unread_costs_total',
        help: 'Responses that should name a cost and from which none was read: too_long, no_memory, incomplete, undecodable, not_found.',
        type: 'counter',
        samples: () => [...this.#unread.values()],
      },
    ];
  }

  #countSettled({
    upstream,
    limit = '',
    actual,
    charged,
  }: Extract<CostEvent, { readonly type: 'cost-settled' }>): void {
    const key = `${upstream}\0${limit}`;
    const costs = this.#settled.get(key) ?? { labels: { upstream, limit }, requests: 0, units: 0, charged: 0 };
    this.#settled.set(key, costs);
    costs.requests += 1;
    costs.units += actual;
    costs.charged += charged;
  }

  #countUnread(upstream: string, reason: string): void {
    const key = `${upstream}\0${reason}`;
    const counter = this.#unread.get(key) ?? { labels: { upstream, reason }, value: 0 };
    this.#unread.set(key, counter);
    counter.value += 1;
  }
}
