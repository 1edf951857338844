import type { Millis, Random } from '../../core/scalars.ts';
import type { LatencySpec } from './latency-model.ts';
import { makeLatencySampler } from './latency-model.ts';
import type { MethodAndPath, RequestMatch } from './request-match.ts';
import { makeRequestMatcher } from './request-match.ts';

/** The latency of some of an upstream's requests. */
export interface LatencyClass extends RequestMatch {
  readonly latency: LatencySpec;
}

/** Returns a function that draws the time of a request: of the first class that matches it, else of `latency`. */
export function makeRequestLatency(
  latency: LatencySpec,
  classes: readonly LatencyClass[],
): (request: MethodAndPath, random: Random) => Millis {
  const others = makeLatencySampler(latency);
  if (classes.length === 0) return (_, random) => others(random);
  const samplers = classes.map((each) => ({
    match: makeRequestMatcher(each),
    sample: makeLatencySampler(each.latency),
  }));
  return (request, random) => {
    const own = samplers.find(({ match }) => match(request) !== undefined);
    return (own?.sample ?? others)(random);
  };
}

/** The mean time of a request, in ms. */
export function meanLatency(
  { latency, latencies = [] }: { readonly latency?: LatencySpec; readonly latencies?: readonly LatencyClass[] },
  request: MethodAndPath,
): Millis {
  return (latencies.find((each) => makeRequestMatcher(each)(request) !== undefined)?.latency ?? latency)?.mean ?? 0;
}
