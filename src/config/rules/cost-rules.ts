/** Rules for the costs of requests. */
import type { PartialConfig } from '../load/partial-config.ts';
import type { Path } from '../load/mistakes.ts';
import type { CostConfig } from '../schema/config-schema.ts';
import { costBounds } from '../schema/limits/cost-schema.ts';
import type { IsWritten, RuleFinding } from './rule-finding.ts';
import { mistakeAt } from './rule-finding.ts';

/** Each cost is complete, and one process counts the units. A preset's costs do not apply where several processes share a limit. */
export function* checkCosts(config: PartialConfig, isWritten: IsWritten): Generator<RuleFinding> {
  for (const [path, cost] of configuredCosts(config)) {
    yield* checkCost(path, cost);
    if (!isWritten(path)) continue;
    if (config.state.store === 'redis') yield mistakeAt(path, `${NOT_SHARED}: use another store than redis`);
    else if (config.workers !== undefined && config.workers !== 1) {
      yield mistakeAt(path, `${NOT_SHARED}: set workers: 1`);
    }
  }
}

const NOT_SHARED = 'processes that share a limit count requests, not units';

function* configuredCosts({ upstreams, routes = [] }: PartialConfig): Generator<readonly [Path, CostConfig]> {
  for (const [name, { rateLimit, limits = [] }] of upstreams) {
    const path = ['upstreams', name];
    if (rateLimit?.cost !== undefined) yield [[...path, 'rateLimit', 'cost'], rateLimit.cost];
    for (const [i, { cost }] of limits.entries()) if (cost !== undefined) yield [[...path, 'limits', i, 'cost'], cost];
  }
  for (const [i, { cost }] of routes.entries()) if (cost !== undefined) yield [['routes', i, 'cost'], cost];
}

function* checkCost(path: Path, cost: CostConfig): Generator<RuleFinding> {
  if (typeof cost === 'number') return;
  const { request, response, method } = cost;
  for (const [key, source] of [
    ['request', request],
    ['response', response],
  ] as const) {
    if (source !== undefined && (source.header === undefined) === (source.json === undefined)) {
      yield mistakeAt([...path, key], 'needs one of header and json');
    }
  }
  if (response?.bucket !== undefined && response.json === undefined) {
    yield mistakeAt([...path, 'response', 'bucket'], 'needs json: the bucket is read from the same body as the cost');
  }
  if (cost.max === undefined && request !== undefined) {
    yield mistakeAt([...path, 'request'], 'needs max: the client chooses this cost');
  } else if (cost.max === undefined && response !== undefined) {
    yield mistakeAt([...path, 'response'], 'needs max: the highest cost that one response may name');
  }
  if (response !== undefined && cost.expected === undefined) {
    yield mistakeAt(
      [...path, 'response'],
      'needs expected: what a request is charged until its response names the cost',
    );
  }
  const { expected, min, max } = costBounds(cost);
  const bounds = `must be from min (${min}) to max (${max})`;
  if (min > max) {
    yield mistakeAt([...path, cost.min === undefined ? 'max' : 'min'], `min (${min}) is above max (${max})`);
    return;
  }
  if (expected < min || expected > max) yield mistakeAt([...path, 'expected'], bounds);
  for (const [verb, units = expected] of Object.entries(method)) {
    if (units < min || units > max) yield mistakeAt([...path, 'method', verb], bounds);
  }
}
