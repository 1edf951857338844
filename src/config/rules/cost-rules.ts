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
  for (const key of ['request', 'response'] as const) {
    const source = cost[key];
    if (source === undefined) continue;
    if ((source.header === undefined) === (source.json === undefined)) {
      yield mistakeAt([...path, key], 'needs one of header and json');
    }
  }
  if (cost.max === undefined) {
    if (cost.request !== undefined) yield mistakeAt([...path, 'request'], 'needs max: the client chooses this cost');
    else if (cost.response !== undefined) {
      yield mistakeAt([...path, 'response'], 'needs max: the highest cost that one response may name');
    }
  }
  const { min, max } = costBounds(cost);
  const key = cost.min === undefined ? 'max' : 'min';
  if (min > max) yield mistakeAt([...path, key], `min (${min}) is above max (${max})`);
  else if (cost.expected < min || cost.expected > max) {
    yield mistakeAt([...path, 'expected'], `must be from min (${min}) to max (${max})`);
  }
}
