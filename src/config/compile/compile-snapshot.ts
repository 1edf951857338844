/** A configuration as people write it, made into what the policy and the proxy work with. */
import { compileCors } from './compile-cors.ts';
import { claimsKeys, compileIdempotency } from './compile-idempotency.ts';
import { compilePlan, compilePoll } from './compile-policy.ts';
import { compileNature, compileThrottle } from './compile-throttle.ts';
import type { Plan } from '../../core/exchange/steps.ts';
import { listOf } from '../rules/nested-limit-rules.ts';
import { overrideBackOff, overrideRetry } from '../schema/retry-overrides.ts';
import { nameOf } from '../schema/route-name.ts';
import type { Config, RouteConfig, UpstreamConfig } from '../schema/config-schema.ts';
import { originsOf } from '../schema/upstream-schema.ts';
import type { LimitRef } from '../../core/limits/limit-ref.ts';
import { ofClass } from '../../core/limits/limit-ref.ts';
import { makePathPattern } from '../../core/http-semantics/path-pattern.ts';
import type { ClientHash } from '../../http/request/client-hash.ts';
import type { EndpointsOptions } from '../../http/upstream/endpoints.ts';
import { Endpoints } from '../../http/upstream/endpoints.ts';
import { makeGlob } from '../../http/request/glob.ts';
import type { ClassRule, NameRule } from '../../http/request/client-identity.ts';
import { headersOf, makeIdentify, makePathTeller, makeTrusts } from '../../http/request/client-identity.ts';
import type { NestedRule } from '../../http/request/match-limits.ts';
import { CheckRouter } from '../../http/ext-authz/check-router.ts';
import { digestToken } from '../../http/ext-authz/bearer-token.ts';
import type { CheckPoint, Route, Snapshot, Target } from '../../http/request/snapshot-types.ts';
import { Router } from '../../http/request/router.ts';

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
        nested: compileNestedRules(upstream, config.clients.key),
        classLimits: compileClassLimits(name, config.clients.classes),
        identities: new Set([rateLimit.credentialHeader.toLowerCase(), ...headersOf(config.clients.key)]),
        idempotency: compileIdempotency(idempotency, config.mode),
        streamIdle,
        throttle: compileThrottle(upstream.throttle),
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
  const routes = config.routes.map((route) => [route, compileRoute(route, config, targets)] as const);
  const without = (others: RouteConfig['check']): Route[] =>
    routes.filter(([{ check }]) => check !== others).map(([, route]) => route);
  return {
    router: new Router(without('only')),
    check: compileCheck(config.check, new CheckRouter(without('never')), targets),
    identify: makeIdentify(clients.key, { classes: compileClasses(config), names: compileNames(config) }, hashes),
    tellPath: makePathTeller(clients.key),
    trusts: makeTrusts(clients.trustedProxies, config.listen.address.kind === 'unix'),
    forwarded: config.forwarded,
    bodyIdle: config.limits.bodyIdle,
    bodyRate: config.limits.bodyRate,
    readRate: config.limits.readRate,
  };
}

function compileRoute(route: RouteConfig, config: Config, targets: ReadonlyMap<string, Target>): Route {
  const upstream = config.upstreams[route.upstream];
  const target = targets.get(route.upstream);
  if (upstream === undefined || target === undefined) throw new Error(`no upstream is named '${route.upstream}'`);
  const retry = overrideRetry(upstream.retry, route.retry);
  const { idempotency } = upstream;
  const given = {
    claims: config.mode === 'enforce' && claimsKeys(idempotency),
    replaysErrors: idempotency.replaysErrors,
    sharesKeys: idempotency.sharesKeys,
    timeout: route.timeout ?? upstream.timeout,
    perTryTimeout: route.perTryTimeout ?? upstream.perTryTimeout,
  };
  const poll = compilePoll(route.poll);
  const planOfClass = new Map<string, Plan>();
  for (const [name, { backOff }] of Object.entries(config.clients.classes)) {
    if (backOff === undefined) continue;
    const ofClass = { ...retry, backOff: overrideBackOff(retry.backOff, backOff) };
    planOfClass.set(name, { ...compilePlan(ofClass, given, config.mode), poll });
  }
  return {
    name: nameOf(route),
    target,
    path: route.path,
    host: route.host,
    methods: route.methods === undefined ? undefined : new Set(route.methods),
    rewritePrefix: route.rewritePrefix,
    cors: compileCors(route.cors, route.methods),
    replayLimit: retry.replayLimit,
    tellNature: compileNature(retry),
    plan: { ...compilePlan(retry, given, config.mode), poll },
    planOfClass,
  };
}

function compileNestedRules({ limits }: UpstreamConfig, keys: Config['clients']['key']): NestedRule[] {
  const secretPlaces = new Set(keys.flatMap((key) => (key.kind === 'path' ? [key.segment] : [])));
  return limits.map(({ name, scope, match: { path, method }, each }) => ({
    name,
    scope,
    patterns: path === undefined ? undefined : listOf(path).map(makePathPattern),
    methods: method === undefined ? undefined : new Set<string>(listOf(method)),
    eachMethod: each.includes('method'),
    eachPath: each.includes('path'),
    secretPlaces,
  }));
}

function compileClassLimits(upstream: string, classes: Config['clients']['classes']): ReadonlyMap<string, LimitRef> {
  const limited = Object.entries(classes).filter(([, { maxRate }]) => maxRate !== undefined);
  return new Map(limited.map(([name]) => [name, { upstream, nested: ofClass(name), scope: 'upstream', key: '' }]));
}

function compileCheck(
  check: Config['check'],
  router: CheckRouter,
  targets: ReadonlyMap<string, Target>,
): CheckPoint | undefined {
  if (check === undefined) return undefined;
  const { path, reportPath, unrouted } = check;
  const token = check.token === undefined ? undefined : digestToken(check.token);
  return { path, reportPath, token, router, passesUnrouted: unrouted === 'pass', targets };
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
