import type { ResourceBound } from '../../core/overload/resource-bound.ts';
import type { MetricFamily } from './exposition/metric-family.ts';

/**
 * The metrics of all bounds. Of several bounds of one name (one per upstream, for example), the highest use and the sum of
 * hits.
 */
export function defineBoundMetrics(readBounds: () => Iterable<ResourceBound>): MetricFamily[] {
  return [
    {
      name: 'tidegate_bound_used_ratio',
      help: 'Use of a bound of this process, as a ratio; at 1 the bound takes effect. Of several bounds of one name, the fullest.',
      type: 'gauge',
      aggregation: 'max',
      samples: () => [...mergeByName(readBounds())].map(([bound, { used }]) => ({ labels: { bound }, value: used })),
    },
    {
      name: 'tidegate_bound_reached_total',
      help: 'Times a bound of this process took effect: something was rejected, dropped, forgotten or delayed.',
      type: 'counter',
      samples: () =>
        [...mergeByName(readBounds())].map(([bound, { reached }]) => ({ labels: { bound }, value: reached })),
    },
  ];
}

function mergeByName(bounds: Iterable<ResourceBound>): Map<string, { used: number; reached: number }> {
  const byName = new Map<string, { used: number; reached: number }>();
  for (const { name, used, reached } of bounds) {
    const known = byName.get(name);
    if (known === undefined) byName.set(name, { used, reached });
    else {
      known.used = Math.max(known.used, used);
      known.reached += reached;
    }
  }
  return byName;
}
