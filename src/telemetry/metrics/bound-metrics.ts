import type { Bound } from '../../core/overload/resource-bound.ts';
import type { Family } from './exposition/metric-family.ts';

/** The metrics of all bounds. Of several of one name (one for each upstream, say) the fullest is told, and the sum. */
export function describeBounds(look: () => Iterable<Bound>): Family[] {
  return [
    {
      name: 'tidegate_bound_used_ratio',
      help: 'What is in use of a bound of this process, as a share of it; at 1 the bound acts. Of several of a kind the fullest.',
      type: 'gauge',
      across: 'max',
      samples: () => [...gather(look())].map(([bound, { used }]) => ({ labels: { bound }, value: used })),
    },
    {
      name: 'tidegate_bound_reached_total',
      help: 'Times a bound of this process acted: refused, dropped or forgot something, or made it wait.',
      type: 'counter',
      samples: () => [...gather(look())].map(([bound, { reached }]) => ({ labels: { bound }, value: reached })),
    },
  ];
}

function gather(bounds: Iterable<Bound>): Map<string, { used: number; reached: number }> {
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
