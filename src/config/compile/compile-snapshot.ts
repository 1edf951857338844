/** Compiles a configuration into what requests use: targets and snapshots. */
import { compileTargetAccounts } from './compile-accounts.ts';
import { compileAsyncWrites } from './compile-async-writes.ts';
import {
  compileAccess,
  compileClassLimitRefs,
  compileClientClasses,
  compileClientNames,
  compileKeyOwners,
  compileRatePolicies,
} from './compile-clients.ts';
import { compileCosts } from './compile-costs.ts';
import { compileCors } from './compile-cors.ts';
import { compileDelivery } from './compile-delivery.ts';
import { compileHealthCheck } from './compile-health-check.ts';
import { compileIdempotency } from './compile-idempotency.ts';
import { compilePlan, compilePoll } from './compile-policy.ts';
import { compileReplaySafety, compileThrottleRules } from './compile-throttle.ts';
import { compileVerify } from './compile-verify.ts';
import type { RoutePolicy } from '../../core/exchange/steps.ts';
import { toList } from '../values/one-or-many.ts';
import { mergeBackOff, mergeRetry } from '../schema/retry-overrides.ts';
import { routeName } from '../schema/route-name.ts';
import type { Config, RouteConfig, UpstreamConfig } from '../schema/config-schema.ts';
import { modeOfUpstream } from '../values/enforcement-mode.ts';
import { recognisesKeys } from '../schema/idempotency-schema.ts';
import { limitOwner, limitScopeOf, upstreamOrigins } from '../schema/upstream-schema.ts';
import { makePathPattern } from '../../core/http-semantics/path-pattern.ts';
import type { ClientHasher } from '../../http/request/client-hash.ts';
import type { EndpointsOptions } from '../../http/upstream/endpoints.ts';
import { Endpoints } from '../../http/upstream/endpoints.ts';
import {
  identityHeaders,
  makeAddressHash,
  makeClientIdentifier,
  makePathRedactor,
  makeTrustCheck,
} from '../../http/request/client-identity.ts';
import { DESCRIPTOR_FIELDS } from '../values/descriptor-field.ts';
import { CheckRouter } from '../../http/ext-authz/check-router.ts';
import type { ClientAuthentication } from '../../http/auth/client-authentication.ts';
import { digestToken } from '../../http/ext-authz/bearer-token.ts';
import type { ExtAuthzSettings, Snapshot } from '../../http/request/snapshot-types.ts';
import type { NestedLimitRule, Route, UpstreamTarget } from '../../http/request/route.ts';
import { Router } from '../../http/request/router.ts';

export type TargetDependencies = Pick<
  EndpointsOptions,
  'lookup' | 'clock' | 'random' | 'listen' | 'onFree' | 'onAwaited'
>;

/**
 * @param urls of practice upstreams, by name
 * @param previous targets whose connections are kept where their settings are equal; none at the start
 * @throws an Error of node:fs, when a certificate cannot be read
 */
export function compileTargets(
  config: Config,
  urls: ReadonlyMap<string, string>,
  parts: TargetDependencies,
  previous: ReadonlyMap<string, UpstreamTarget> = new Map(),
): ReadonlyMap<string, UpstreamTarget> {
  return new Map(
    Object.entries(config.upstreams).map(([name, upstream]) => {
      const practiceUrl = urls.get(name);
      const { connections, connectTimeout, tls, http2, preserveHost, streamIdle, rateLimit } = upstream;
      const options: EndpointsOptions = {
        ...parts,
        upstream: name,
        urls: practiceUrl === undefined ? upstreamOrigins(upstream) : [practiceUrl],
        pool: { maxConnections: connections, connectTimeout, tls, http2 },
        outliers: upstream.outlierDetection,
        hasOwnLimits: limitOwner(upstream) === 'endpoint',
        healthCheck: compileHealthCheck(upstream.healthCheck),
        refresh: upstream.dnsRefresh,
      };
      const previousEndpoints = previous.get(name)?.endpoints;
      const target: UpstreamTarget = {
        name,
        endpoints: previousEndpoints?.isSameAs(options) === true ? previousEndpoints : new Endpoints(options),
        http2,
        preserveHost,
        scope: limitScopeOf(upstream),
        accounts: compileTargetAccounts(upstream),
        credentialHeader: rateLimit.credentialHeader.toLowerCase(),
        learnsFromLatency: rateLimit.learnFromLatency,
        nestedLimits: compileNestedRules(upstream, config.clients.key),
        classLimits: compileClassLimitRefs(name, config.clients.classes),
        identityHeaders: new Set([
          rateLimit.credentialHeader.toLowerCase(),
          ...identityHeaders(config.clients.key),
          ...authHeaders(config.clients.auth),
        ]),
        idempotency: compileIdempotency(
          upstream,
          { ...config, mode: modeOfUpstream(config, name) },
          options.urls.length,
        ),
        streamIdle,
        throttle: compileThrottleRules(upstream),
      };
      return [name, target];
    }),
  );
}

export function compileSnapshot(
  config: Config,
  targets: ReadonlyMap<string, UpstreamTarget>,
  clientHasher: Pick<ClientHasher, 'cachedHash'>,
  authentication?: ClientAuthentication,
): Snapshot {
  const { clients } = config;
  const hashAddress = makeAddressHash(clientHasher);
  const routes = config.routes.map((route) => [route, compileRouteWithFallback(route, config, targets)] as const);
  const routesExcept = (excluded: RouteConfig['check']): Route[] =>
    routes.filter(([{ check }]) => check !== excluded).map(([, route]) => route);
  return {
    router: new Router(routesExcept('only')),
    check: compileExternalAuthorization(config.check, new CheckRouter(routesExcept('never')), targets),
    authentication,
    accessOf: compileAccess(clients.classes),
    identifyClient: makeClientIdentifier(
      clients.key,
      {
        classes: compileClientClasses(config),
        names: compileClientNames(config),
        owners: compileKeyOwners(config),
      },
      clientHasher,
      hashAddress,
    ),
    hashAddress,
    ratePolicies: compileRatePolicies(clients),
    redactPath: makePathRedactor(clients.key),
    isTrustedProxy: makeTrustCheck(clients.trustedProxies, config.listen.address.kind === 'unix'),
    addsForwarded: config.forwarded,
    bodyIdleTimeout: config.limits.bodyIdle,
    minBodyRate: config.limits.bodyRate,
    minReadRate: config.limits.readRate,
  };
}

/**
 * A fallback has none of its own: a request falls back once. A signature belongs to one upstream, and an observed request is sent to
 * the first.
 */
function compileRouteWithFallback(
  route: RouteConfig,
  config: Config,
  targets: ReadonlyMap<string, UpstreamTarget>,
): Route {
  const compiled = compileRoute(route, config, targets);
  const upstream = config.upstreams[route.upstream]?.fallback;
  const fallsBack = compiled.policy.mode !== 'observe' && (route.deliver ?? route.verify) === undefined;
  if (upstream === undefined || !fallsBack) return compiled;
  return { ...compiled, fallback: compileRoute({ ...route, upstream }, config, targets) };
}

function compileRoute(route: RouteConfig, config: Config, targets: ReadonlyMap<string, UpstreamTarget>): Route {
  const upstream = config.upstreams[route.upstream];
  const target = targets.get(route.upstream);
  if (upstream === undefined || target === undefined) throw new Error(`no upstream is named '${route.upstream}'`);
  const retry = mergeRetry(upstream.retry, route.retry);
  const { idempotency } = upstream;
  const mode = modeOfUpstream(config, route.upstream);
  const planOptions = {
    // A message is delivered at least once, for longer than a receiver remembers a key of its sender.
    claims: mode === 'enforce' && recognisesKeys(idempotency) && route.deliver === undefined,
    replaysErrors: idempotency.replaysErrors,
    sharesKeys: idempotency.sharesKeys,
    concurrentWrites: target.idempotency?.concurrent === 'pass',
    timeout: route.timeout ?? upstream.timeout,
    perTryTimeout: route.perTryTimeout ?? upstream.perTryTimeout,
    coalesces: mode === 'enforce' && route.coalesce !== undefined && route.coalesce !== false,
  };
  const poll = compilePoll(route.poll);
  const policyByClass = new Map<string, RoutePolicy>();
  for (const [name, { backOff }] of Object.entries(config.clients.classes)) {
    if (backOff === undefined) continue;
    const classRetry = { ...retry, backOff: mergeBackOff(retry.backOff, backOff) };
    policyByClass.set(name, { ...compilePlan(classRetry, planOptions, mode), poll });
  }
  return {
    name: routeName(route),
    fallback: undefined,
    target,
    path: route.path,
    host: route.host,
    methods: route.methods === undefined ? undefined : new Set(route.methods),
    rewritePrefix: route.rewritePrefix,
    isPublic: config.clients.auth === undefined || route.auth === 'none',
    isRestricted: Object.values(config.clients.classes).some(({ allow }) => allow?.routes !== undefined),
    cors: compileCors(route.cors, route.methods),
    delivery: compileDelivery(route.deliver),
    asyncWrites: compileAsyncWrites(route.async),
    verify: compileVerify(route.verify),
    stickyAccount: route.stickyAccount === true,
    coalescing: route.coalesce === 'client' ? 'client' : 'credentials',
    costs: compileCosts(config, upstream, route),
    replayLimit: route.deliver?.maxBody ?? retry.replayLimit,
    replaySafetyOf: compileReplaySafety(retry),
    policy: { ...compilePlan(retry, planOptions, mode), poll },
    policyByClass,
  };
}

function compileNestedRules({ limits }: UpstreamConfig, keys: Config['clients']['key']): NestedLimitRule[] {
  const secretSegments = new Set(keys.flatMap((key) => (key.kind === 'path' ? [key.segment] : [])));
  return limits.map(({ name, scope, match: { path, method, except }, each }) => ({
    name,
    scope,
    patterns: path === undefined ? undefined : toList(path).map(makePathPattern),
    exceptions: except === undefined ? undefined : toList(except).map(makePathPattern),
    methods: method === undefined ? undefined : new Set<string>(toList(method)),
    eachMethod: each.includes('method'),
    eachPath: each.includes('path'),
    secretSegments,
  }));
}

function compileExternalAuthorization(
  check: Config['check'],
  router: CheckRouter,
  targets: ReadonlyMap<string, UpstreamTarget>,
): ExtAuthzSettings | undefined {
  if (check === undefined) return undefined;
  const { path, reportPath, unrouted } = check;
  const token = check.token === undefined ? undefined : digestToken(check.token);
  const descriptors = new Map(Object.entries({ ...DESCRIPTOR_FIELDS, ...check.descriptors }));
  const allowsUnrouted = unrouted === 'pass';
  return { checkPath: path, reportPath, tokenDigest: token, router, allowsUnrouted, targets, descriptors };
}

/** In lower case. */
function authHeaders(auth: Config['clients']['auth']): string[] {
  return [auth?.apiKeys?.header, auth?.jwt?.header].flatMap((header) => header?.toLowerCase() ?? []);
}

/** Upstreams whose certificate is not verified. */
export function insecureUpstreams(config: Config): ReadonlySet<string> {
  const insecure = Object.entries(config.upstreams).filter(([, { tls }]) => tls.insecure);
  return new Set(insecure.map(([name]) => name));
}
