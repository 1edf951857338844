import { availableParallelism } from 'node:os';
import type { Config, RouteConfig, UpstreamConfig } from '../schema/config-schema.ts';

/** The number of worker processes. */
export function countWorkers({ workers }: Config): number {
  return workers === 'auto' ? availableParallelism() : workers;
}

/** One worker's part of the configuration, with its share of the bounds for all workers: see docs/workers.md. */
export function divideConfig(config: Config, workers: number): Config {
  const share = (whole: number): number => Math.max(Math.min(1, whole), Math.floor(whole / workers));
  const { limits } = config;
  const isRedis = config.state.store === 'redis';
  const divideUpstream = (upstream: UpstreamConfig): UpstreamConfig => {
    const { queue, retry } = upstream;
    return {
      ...upstream,
      connections: share(upstream.connections),
      queue: { ...queue, maxDepth: share(queue.maxDepth) },
      retry: { ...retry, budget: { ...retry.budget, burst: share(retry.budget.burst) } },
    };
  };
  const divideRoute = (route: RouteConfig): RouteConfig => {
    const { poll, deliver, async } = route;
    return {
      ...route,
      ...(poll && { poll: { ...poll, maxWaiting: share(poll.maxWaiting) } }),
      // The primary has the deliveries in SQLite, and bounds the attempts of all workers.
      ...(isRedis && deliver && { deliver: { ...deliver, concurrency: share(deliver.concurrency) } }),
      ...(isRedis && async && { async: { ...async, concurrency: share(async.concurrency) } }),
    };
  };
  return {
    ...config,
    routes: config.routes.map(divideRoute),
    limits: {
      ...limits,
      connections: share(limits.connections),
      requests: share(limits.requests),
      replayMemory: share(limits.replayMemory),
    },
    upstreams: Object.fromEntries(Object.entries(config.upstreams).map(([name, each]) => [name, divideUpstream(each)])),
  };
}
