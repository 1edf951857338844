import { availableParallelism } from 'node:os';
import type { Config, RouteConfig, UpstreamConfig } from '../../config/schema/config-schema.ts';

/** How many processes serve. */
export function countWorkers({ workers }: Config): number {
  return workers === 'auto' ? availableParallelism() : workers;
}

/** What one of several workers is to take of what the configuration gives to all: docs/workers.md. */
export function divideConfig(config: Config, workers: number): Config {
  const part = (whole: number): number => Math.max(Math.min(1, whole), Math.floor(whole / workers));
  const { limits } = config;
  const divideUpstream = (upstream: UpstreamConfig): UpstreamConfig => {
    const { queue, retry } = upstream;
    return {
      ...upstream,
      connections: part(upstream.connections),
      queue: { ...queue, maxDepth: part(queue.maxDepth) },
      retry: { ...retry, budget: { ...retry.budget, burst: part(retry.budget.burst) } },
    };
  };
  const divideRoute = (route: RouteConfig): RouteConfig => {
    const { poll } = route;
    return poll === undefined ? route : { ...route, poll: { ...poll, maxWaiting: part(poll.maxWaiting) } };
  };
  return {
    ...config,
    routes: config.routes.map(divideRoute),
    limits: {
      ...limits,
      connections: part(limits.connections),
      requests: part(limits.requests),
      replayMemory: part(limits.replayMemory),
    },
    upstreams: Object.fromEntries(Object.entries(config.upstreams).map(([name, each]) => [name, divideUpstream(each)])),
  };
}
