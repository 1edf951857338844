/** A scenario as people write it, made into a world to run and what it should come to. */
import { compilePlan, compileUpstream } from '../../config/compile/compile-policy.ts';
import { listOf } from '../../config/rules/nested-limit-rules.ts';
import type { ScenarioConfig } from './scenario-schema.ts';
import { makePathPattern, segmentsOf } from '../../core/http-semantics/path-pattern.ts';
import { firstMatch } from '../../http/request/match-path.ts';
import type { NestedSpec } from '../upstream/nested-limit-models.ts';
import type { ClientGroup, Scenario } from '../scenario.ts';
import { UPSTREAM } from '../scenario.ts';

export function compileScenario(name: string, config: ScenarioConfig): Scenario {
  const { duration, warmup, upstream, network, clients, replicas, shared, lease, pool, pauses, mode, policy } = config;
  const { scope, rate, nested, queue, budget } = compileUpstream(UPSTREAM, policy);
  return {
    name,
    duration,
    warmup,
    upstream: { ...upstream, limits: upstream.limits.map(compileModel) },
    network,
    clients: clients.map((group) => compileGroup(group, policy.limits)),
    replicas,
    shared,
    lease,
    pool,
    pauses,
    policy: { scope, rate, nested, queue, budget, plan: compilePlan(policy.retry, policy, mode) },
  };
}

function compileModel({ name, match, each, limit, reason }: ScenarioConfig['upstream']['limits'][number]): NestedSpec {
  return {
    name,
    ...(match.path === undefined ? {} : { path: listOf(match.path) }),
    ...(match.method === undefined ? {} : { method: listOf(match.method) }),
    eachMethod: each.includes('method'),
    limit,
    ...(reason === undefined ? {} : { reason }),
  };
}

/** Its requests are alike: they stand under the same limits. */
function limitsOf(
  { method, path }: Pick<ScenarioConfig['clients'][number], 'method' | 'path'>,
  limits: ScenarioConfig['policy']['limits'],
): ClientGroup['limits'] {
  return limits.flatMap(({ name, scope, match, each }) => {
    if (match.method !== undefined && !listOf(match.method).includes(method)) return [];
    const patterns = match.path === undefined ? undefined : listOf(match.path).map(makePathPattern);
    const found = patterns === undefined ? undefined : firstMatch(patterns, segmentsOf(path));
    if (patterns !== undefined && found === undefined) return [];
    const { pattern, captured = [] } = found ?? {};
    const ofPath = pattern !== undefined && each.includes('path') ? [pattern.fill(captured)] : captured;
    return [{ nested: name, scope, key: [...(each.includes('method') ? [method] : []), ...ofPath].join(' ') }];
  });
}

function compileGroup(
  group: ScenarioConfig['clients'][number],
  limits: ScenarioConfig['policy']['limits'],
): ClientGroup {
  const { name, count, weight, from, to = Number.POSITIVE_INFINITY, steps, honoursRetryAfter } = group;
  const { method, path, keyed } = group;
  const ofEach = (demand: { readonly rate?: number; readonly total?: number }): number =>
    demand.rate ?? (demand.total ?? 0) / count;
  return {
    name,
    count,
    rate: ofEach(group),
    weight,
    from,
    to,
    steps: steps.map((step) => ({ at: step.at, rate: ofEach(step) })).toSorted((a, b) => a.at - b.at),
    honoursRetryAfter,
    method,
    path,
    limits: limitsOf(group, limits),
    keyed,
  };
}
