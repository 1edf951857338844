import type { Millis, Random } from '../../core/scalars.ts';
import { requireAtLeast } from '../limit-models/check-range.ts';

/** The time an upstream takes to answer, in ms. Every kind has the mean `mean`. */
export type LatencySpec =
  | { readonly kind: 'constant'; readonly mean: Millis }
  /** Within `mean` ± `spread`; the spread is at most the mean, and the mean when absent. */
  | { readonly kind: 'uniform'; readonly mean: Millis; readonly spread?: Millis }
  | { readonly kind: 'exponential'; readonly mean: Millis }
  /** `sigma` of the logarithm: 0.5 when absent; 1 gives a p99 of six times the mean. */
  | { readonly kind: 'lognormal'; readonly mean: Millis; readonly sigma?: number }
  /** Measured times, each equally likely: the nth of N, sorted, is the quantile (n − ½) / N. `mean` is their mean. */
  | { readonly kind: 'quantiles'; readonly mean: Millis; readonly quantiles: readonly Millis[] };

/** Returns a function that draws one time, in ms. The spec is interpreted once, not at each draw. */
export function makeLatencySampler(spec: LatencySpec): (random: Random) => Millis {
  const mean = requireAtLeast(0, spec.mean, 'mean');
  switch (spec.kind) {
    case 'constant':
      return () => mean;
    case 'uniform': {
      const spread = Math.min(mean, requireAtLeast(0, spec.spread ?? mean, 'spread'));
      return (random) => mean + spread * (2 * random() - 1);
    }
    case 'exponential':
      return (random) => mean * Math.log(1 / (1 - random()));
    case 'lognormal': {
      const sigma = requireAtLeast(0, spec.sigma ?? 0.5, 'sigma');
      // E[exp(σZ − σ²/2)] = 1
      return (random) => mean * Math.exp(sigma * standardNormal(random) - (sigma * sigma) / 2);
    }
    case 'quantiles': {
      const quantiles = spec.quantiles.map((each) => requireAtLeast(0, each, 'quantile'));
      return (random) => quantiles[Math.floor(random() * quantiles.length)] ?? mean;
    }
  }
}

/** Box and Muller, Annals of Mathematical Statistics 29 (1958). */
function standardNormal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}
