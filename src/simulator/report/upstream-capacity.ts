import type { Millis, PerSecond } from '../../core/scalars.ts';
import { Slowness } from '../service/slowdown.ts';
import { rateAt } from '../scenario.ts';
import type { ClientGroup } from '../scenario.ts';
import { makeLimitModel } from '../limit-models/limit-model-spec.ts';
import type { WorkersSpec } from '../limit-models/workers.ts';
import { meanLatency } from '../upstream/request-latency.ts';
import type { UpstreamSpec } from '../upstream/upstream-model.ts';

/**
 * Returns the requests a second that an upstream can serve in the interval that ends at a time, from its limit in the unit of its
 * kind; 0 while it is down. Limits on requests in flight and numbers of workers are converted by Little's law, with the mean latency of what
 * clients want to send, or with `latency` without clients.
 */
export function upstreamCapacity(
  upstream: UpstreamSpec,
  clients: readonly ClientGroup[] = [],
  interval: Millis = 0,
): (now: Millis, limit: number) => PerSecond {
  const { limit: spec, outages = [], latency, accounts = [] } = upstream;
  if (accounts.length > 0) {
    const each = accounts.map(({ limit }) => ({
      limit,
      of: upstreamCapacity({ ...upstream, limit, accounts: [] }, clients, interval),
    }));
    return (now) => each.reduce((sum, { limit, of }) => sum + of(now, makeLimitModel(limit).limit), 0);
  }
  const groups = clients.map((group) => ({ group, latency: meanLatency(upstream, group) }));
  const mean = (now: Millis): Millis => (groups.length === 0 ? (latency?.mean ?? 0) : meanOf(groups, now));
  const capacity = ((): ((now: Millis, limit: number) => PerSecond) => {
    switch (spec.kind) {
      case 'fixed-window':
      case 'sliding-window':
      case 'sliding-window-counting':
        return (_, limit) => (1000 * limit) / spec.window;
      case 'concurrency':
        return (now, limit) => (1000 * limit) / mean(now);
      case 'workers':
        return workersCapacity(spec, mean, interval);
      case 'token-bucket':
      case 'gcra':
      case 'blackout':
      case 'unlimited':
        return (_, limit) => limit;
    }
  })();
  return (now, limit) => (outages.some(({ from, to }) => now > from && now <= to) ? 0 : capacity(now, limit));
}

/** Of workers that keep their request while it waits for the pool, the slower of both. */
function workersCapacity(
  { pool, slowdowns = [] }: WorkersSpec,
  mean: (now: Millis) => Millis,
  interval: Millis,
): (now: Millis, workers: number) => PerSecond {
  const slowness = new Slowness(slowdowns);
  return (now, workers) => {
    const byWorkers =
      (1000 * workers) / (mean(now) / slowness.meanSpeed(now - interval, now) + (pool?.latency.mean ?? 0));
    return pool === undefined ? byWorkers : Math.min(byWorkers, (1000 * pool.connections) / pool.latency.mean);
  };
}

interface GroupLatency {
  readonly group: ClientGroup;
  readonly latency: Millis;
}

/** The mean over what the groups want to send; over the groups while none wants to send. */
function meanOf(groups: readonly GroupLatency[], now: Millis): Millis {
  let [weights, sum] = [0, 0];
  for (const { group, latency } of groups) {
    const weight = group.count * rateAt(group, now);
    weights += weight;
    sum += weight * latency;
  }
  return weights > 0 ? sum / weights : groups.reduce((total, { latency }) => total + latency, 0) / groups.length;
}
