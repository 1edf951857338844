/** Compiles a scenario file into a scenario to run and its goals. */
import { compileCost } from '../../config/compile/compile-costs.ts';
import { compilePlan, compileUpstream } from '../../config/compile/compile-policy.ts';
import { compileClassQuotas } from '../../config/compile/compile-quotas.ts';
import { toList } from '../../config/values/one-or-many.ts';
import type { ScenarioConfig } from './scenario-schema.ts';
import { makePathPattern, segmentsOf } from '../../core/http-semantics/path-pattern.ts';
import { firstMatchingPattern } from '../../http/request/match-path.ts';
import type { NestedLimitSpec } from '../upstream/nested-limit-models.ts';
import type { RequestMatch } from '../upstream/request-match.ts';
import type { ClientGroup, Scenario } from '../scenario.ts';
import { UPSTREAM_NAME } from '../scenario.ts';

export function compileScenario(name: string, config: ScenarioConfig): Scenario {
  const { duration, warmup, upstream, network, clients, replicas, shared, lease, pool, pauses, mode, policy } = config;
  const classQuotas = compileClassQuotas({ classes: policy.classes, auth: undefined });
  // The upstream knows which account a simulated request uses without a credential.
  const names = upstream.accounts.map(({ name }) => ({ name, header: 'Authorization', value: name }));
  const compiled = compileUpstream(UPSTREAM_NAME, { ...policy, accounts: names.length === 0 ? undefined : names });
  const { scope, rate, nested, quotas, queue, budget, accounts } = compiled;
  return {
    name,
    duration,
    warmup,
    upstream: {
      ...upstream,
      limits: upstream.limits.map(compileNestedLimitModel),
      latencies: upstream.latencies.map(({ match, latency }) => ({ ...compileMatch(match), latency })),
    },
    networkLatency: network,
    clients: clients.map((group) => compileGroup(group, policy.limits)),
    replicas,
    shared,
    leaseLatency: lease,
    poolLatency: pool,
    pauses,
    policy: {
      ...{ scope, rate, nested, quotas, queue, budget, accounts },
      ...(classQuotas.length === 0 ? {} : { classQuotas }),
      plan: compilePlan(policy.retry, policy, mode),
      cost: compileScenarioCost(policy),
    },
  };
}

/** Where the costs of requests are read has no meaning here: a request, or its response, names its cost. */
function compileScenarioCost({ rateLimit: { cost } }: ScenarioConfig['policy']): Scenario['policy']['cost'] {
  if (cost === undefined) return undefined;
  const { rule, request } = compileCost('', cost);
  return { rule, isDeclared: request !== undefined };
}

function compileNestedLimitModel({
  name,
  match,
  each,
  limit,
  reason,
}: ScenarioConfig['upstream']['limits'][number]): NestedLimitSpec {
  return {
    name,
    ...compileMatch(match),
    eachMethod: each.includes('method'),
    limit,
    ...(reason === undefined ? {} : { reason }),
  };
}

function compileMatch({ path, method }: ScenarioConfig['upstream']['limits'][number]['match']): RequestMatch {
  return {
    ...(path === undefined ? {} : { path: toList(path) }),
    ...(method === undefined ? {} : { method: toList(method) }),
  };
}

/** All requests of a group are alike: the same limits apply to each. */
function matchGroupLimits(
  { method, path }: Pick<ScenarioConfig['clients'][number], 'method' | 'path'>,
  limits: ScenarioConfig['policy']['limits'],
): ClientGroup['limits'] {
  return limits.flatMap(({ name, scope, match, each }) => {
    if (match.method !== undefined && !toList(match.method).includes(method)) return [];
    const patterns = match.path === undefined ? undefined : toList(match.path).map(makePathPattern);
    const found = patterns === undefined ? undefined : firstMatchingPattern(patterns, segmentsOf(path));
    if (patterns !== undefined && found === undefined) return [];
    const { pattern, captured = [] } = found ?? {};
    const ofPath = pattern !== undefined && each.includes('path') ? [pattern.substitute(captured)] : captured;
    return [{ nested: name, scope, key: [...(each.includes('method') ? [method] : []), ...ofPath].join(' ') }];
  });
}

function compileGroup(
  group: ScenarioConfig['clients'][number],
  limits: ScenarioConfig['policy']['limits'],
): ClientGroup {
  const { name, count, weight, from, to = Number.POSITIVE_INFINITY, steps, honoursRetryAfter } = group;
  const { method, path, keyed, timeout } = group;
  const ratePerClient = (demand: { readonly rate?: number; readonly total?: number }): number =>
    demand.rate ?? (demand.total ?? 0) / count;
  return {
    name,
    count,
    rate: ratePerClient(group),
    weight,
    className: group.class,
    from,
    to,
    steps: steps.map((step) => ({ at: step.at, rate: ratePerClient(step) })).toSorted((a, b) => a.at - b.at),
    honoursRetryAfter,
    method,
    path,
    limits: matchGroupLimits(group, limits),
    keyed,
    patience: timeout === undefined ? undefined : () => timeout,
    costRange: typeof group.cost === 'number' ? { min: group.cost, max: group.cost } : group.cost,
  };
}
