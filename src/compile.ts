/** A configuration as people write it, made into what the policy and the proxy work with. */
import type { Plan } from './exchange.ts';
import { overrideBackOff, overrideRetry } from './config/override.ts';
import type { BackOffConfig, Config, RetryConfig, RouteConfig, UpstreamConfig } from './config/schema.ts';
import type { BackOffStrategy } from './policy/backoff.ts';
import { makeBackOff } from './policy/backoff.ts';
import type { Mode, RetryOn, RetryReason } from './policy/types.ts';
import type { ClassRule, Hash } from './proxy/identity.ts';
import { globPattern, makeIdentify, makeTrusts } from './proxy/identity.ts';
import type { Route, Snapshot, Target } from './proxy/plan.ts';
import { openPool, PoolLoad } from './proxy/pool.ts';
import { Router } from './proxy/router.ts';
import type { UpstreamSettings } from './state/memory.ts';

/** How the reasons of `backOffFor` are called in the policy. */
const REASONS: Readonly<Record<keyof RetryConfig['backOffFor'], RetryReason>> = {
  '5xx': 'status_5xx',
  '429': 'status_429',
  'connect-failure': 'connect',
  reset: 'reset',
  timeout: 'timeout',
  lock: 'lock',
};

/** @param urls of upstreams that this process plays itself, by name */
export function compileTargets(config: Config, urls: ReadonlyMap<string, string>): ReadonlyMap<string, Target> {
  return new Map(
    Object.entries(config.upstreams).map(([name, upstream]) => {
      const url = new URL(urls.get(name) ?? upstream.url);
      const { connections, connectTimeout, tls, preserveHost, streamIdle, rateLimit, idempotency } = upstream;
      const target: Target = {
        name,
        dispatcher: openPool({ connections, connectTimeout, tls }),
        load: new PoolLoad(connections),
        origin: url.origin,
        authority: url.host,
        preserveHost,
        scope: rateLimit.scope,
        credentialHeader: rateLimit.credentialHeader.toLowerCase(),
        idempotencyHeader: idempotency.header.toLowerCase(),
        streamIdle,
      };
      return [name, target];
    }),
  );
}

export function compileSnapshot(config: Config, targets: ReadonlyMap<string, Target>, hash: Hash): Snapshot {
  const { clients } = config;
  return {
    router: new Router(config.routes.map((route) => compileRoute(route, config, targets))),
    identify: makeIdentify(clients.key, compileClasses(config), hash),
    trusts: makeTrusts(clients.trustedProxies),
    forwarded: config.forwarded,
    bodyIdle: config.limits.bodyIdle,
  };
}

export function compileUpstreams(config: Config): UpstreamSettings[] {
  return Object.entries(config.upstreams).map(([name, { rateLimit, queue, retry }]) => ({
    name,
    scope: rateLimit.scope,
    rate: {
      initialRate: rateLimit.initialRate,
      maxRate: rateLimit.maxRate ?? Number.POSITIVE_INFINITY,
      minRate: rateLimit.minRate,
      cooldown: rateLimit.cooldown,
    },
    queue,
    budget: retry.budget,
  }));
}

/** As metrics and logs call it: its host and path, and its methods where two routes differ by nothing else. */
export function nameOf(route: RouteConfig): string {
  const place = `${route.host ?? ''}${route.path}`;
  return route.methods === undefined ? place : `${route.methods.join(',')} ${place}`;
}

function compileRoute(route: RouteConfig, config: Config, targets: ReadonlyMap<string, Target>): Route {
  const upstream = config.upstreams[route.upstream];
  const target = targets.get(route.upstream);
  if (upstream === undefined || target === undefined) throw new Error(`no upstream is named '${route.upstream}'`);
  const retry = overrideRetry(upstream.retry, route.retry);
  const planOfClass = new Map<string, Plan>();
  for (const [name, { backOff }] of Object.entries(config.clients.classes)) {
    if (backOff === undefined) continue;
    planOfClass.set(
      name,
      compilePlan({ ...retry, backOff: overrideBackOff(retry.backOff, backOff) }, upstream, route, config.mode),
    );
  }
  return {
    name: nameOf(route),
    target,
    path: route.path,
    host: route.host,
    methods: route.methods === undefined ? undefined : new Set(route.methods),
    rewritePrefix: route.rewritePrefix,
    replayLimit: retry.replayLimit,
    plan: compilePlan(retry, upstream, route, config.mode),
    planOfClass,
  };
}

export function compilePlan(
  retry: RetryConfig,
  upstream: UpstreamConfig,
  route: Pick<RouteConfig, 'timeout' | 'perTryTimeout'> = {},
  mode: Mode = 'enforce',
): Plan {
  const backOffFor: Partial<Record<RetryReason, BackOffStrategy>> = {};
  for (const [condition, override] of Object.entries(retry.backOffFor)) {
    if (override === undefined || !isReason(condition)) continue;
    backOffFor[REASONS[condition]] = compileBackOff(overrideBackOff(retry.backOff, override));
  }
  return {
    mode,
    timeout: route.timeout ?? upstream.timeout,
    perTryTimeout: route.perTryTimeout ?? upstream.perTryTimeout,
    retry: {
      retryOn: compileRetryOn(retry.retryOn),
      attempts: retry.attempts,
      backOff: compileBackOff(retry.backOff),
      backOffFor,
      maxRetryAfter: retry.maxRetryAfter,
      unkeyedWrites: retry.unkeyedWrites,
      onClientGone: retry.onClientGone,
    },
  };
}

function isReason(condition: string): condition is keyof typeof REASONS {
  return Object.hasOwn(REASONS, condition);
}

function compileBackOff(backOff: BackOffConfig): BackOffStrategy {
  return makeBackOff(backOff);
}

function compileRetryOn(conditions: RetryConfig['retryOn']): RetryOn {
  const statuses = new Set<number>();
  for (const condition of conditions) {
    if (typeof condition === 'number') statuses.add(condition);
    else if (condition === '5xx') for (let status = 500; status <= 599; status += 1) statuses.add(status);
    else if (condition === 'gateway-error') for (const status of [502, 503, 504]) statuses.add(status);
  }
  return {
    statuses,
    connectFailure: conditions.includes('connect-failure'),
    reset: conditions.includes('reset'),
    timeout: conditions.includes('timeout'),
    lock: conditions.includes('lock'),
  };
}

function compileClasses(config: Config): ClassRule[] {
  return Object.entries(config.clients.classes).map(([name, { match, weight }]) => ({
    name,
    weight,
    headers: Object.entries(match.header ?? {}).map(
      ([header, glob]) => [header.toLowerCase(), globPattern(glob)] as const,
    ),
    keys: (match.key ?? []).map(globPattern),
  }));
}
