/** A configuration as people write it, made into what the policy and the proxy work with. */
import { compilePlan } from './compile-policy.ts';
import type { Plan } from './exchange.ts';
import { overrideBackOff, overrideRetry } from './config/override.ts';
import { nameOf } from './config/route-name.ts';
import type { Config, RouteConfig } from './config/schema.ts';
import { originsOf } from './config/upstream-schema.ts';
import type { ClientHash } from './proxy/client-hash.ts';
import type { EndpointsOptions } from './proxy/endpoints.ts';
import { Endpoints } from './proxy/endpoints.ts';
import { makeGlob } from './proxy/glob.ts';
import type { ClassRule, NameRule } from './proxy/identity.ts';
import { headersOf, makeIdentify, makePathTeller, makeTrusts } from './proxy/identity.ts';
import type { Route, Snapshot, Target } from './proxy/plan.ts';
import { Router } from './proxy/router.ts';

export type TargetParts = Pick<EndpointsOptions, 'lookup' | 'clock' | 'random' | 'listen' | 'onFree'>;

/**
 * @param urls of upstreams that this process plays itself, by name
 * @param before whose connections are kept where they would be made just so again; none at a start
 * @throws an Error of node:fs, when a certificate cannot be read
 */
export function compileTargets(
  config: Config,
  urls: ReadonlyMap<string, string>,
  parts: TargetParts,
  before: ReadonlyMap<string, Target> = new Map(),
): ReadonlyMap<string, Target> {
  return new Map(
    Object.entries(config.upstreams).map(([name, upstream]) => {
      const own = urls.get(name);
      const { connections, connectTimeout, tls, http2, preserveHost, streamIdle, rateLimit, idempotency } = upstream;
      const options: EndpointsOptions = {
        ...parts,
        upstream: name,
        urls: own === undefined ? originsOf(upstream) : [own],
        pool: { connections, connectTimeout, tls, http2 },
        outliers: upstream.outlierDetection,
        refresh: upstream.dnsRefresh,
      };
      const known = before.get(name)?.endpoints;
      const target: Target = {
        name,
        endpoints: known?.isAs(options) === true ? known : new Endpoints(options),
        http2,
        preserveHost,
        scope: rateLimit.scope,
        credentialHeader: rateLimit.credentialHeader.toLowerCase(),
        identities: new Set([rateLimit.credentialHeader.toLowerCase(), ...headersOf(config.clients.key)]),
        idempotencyHeader: idempotency.header === false ? undefined : idempotency.header.toLowerCase(),
        streamIdle,
      };
      return [name, target];
    }),
  );
}

export function compileSnapshot(
  config: Config,
  targets: ReadonlyMap<string, Target>,
  hashes: Pick<ClientHash, 'of'>,
): Snapshot {
  const { clients } = config;
  return {
    router: new Router(config.routes.map((route) => compileRoute(route, config, targets))),
    identify: makeIdentify(clients.key, { classes: compileClasses(config), names: compileNames(config) }, hashes),
    tellPath: makePathTeller(clients.key),
    trusts: makeTrusts(clients.trustedProxies, config.listen.address.kind === 'unix'),
    forwarded: config.forwarded,
    bodyIdle: config.limits.bodyIdle,
    bodyRate: config.limits.bodyRate,
  };
}

function compileRoute(route: RouteConfig, config: Config, targets: ReadonlyMap<string, Target>): Route {
  const upstream = config.upstreams[route.upstream];
  const target = targets.get(route.upstream);
  if (upstream === undefined || target === undefined) throw new Error(`no upstream is named '${route.upstream}'`);
  const retry = overrideRetry(upstream.retry, route.retry);
  const times = {
    timeout: route.timeout ?? upstream.timeout,
    perTryTimeout: route.perTryTimeout ?? upstream.perTryTimeout,
  };
  const planOfClass = new Map<string, Plan>();
  for (const [name, { backOff }] of Object.entries(config.clients.classes)) {
    if (backOff === undefined) continue;
    planOfClass.set(
      name,
      compilePlan({ ...retry, backOff: overrideBackOff(retry.backOff, backOff) }, times, config.mode),
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
    plan: compilePlan(retry, times, config.mode),
    planOfClass,
  };
}

function compileClasses(config: Config): ClassRule[] {
  return Object.entries(config.clients.classes).map(([name, { match, weight }]) => ({
    name,
    weight,
    headers: Object.entries(match.header ?? {}).map(
      ([header, glob]) => [header.toLowerCase(), makeGlob(glob)] as const,
    ),
    keys: (match.key ?? []).map(makeGlob),
  }));
}

function compileNames({ clients }: Config): NameRule[] {
  return Object.entries(clients.names).map(([name, keys]) => ({ name, keys: keys.map(makeGlob) }));
}

/** Upstreams whose certificate nobody verifies. */
export function insecureUpstreams(config: Config): ReadonlySet<string> {
  const insecure = Object.entries(config.upstreams).filter(([, { tls }]) => tls.insecure);
  return new Set(insecure.map(([name]) => name));
}
