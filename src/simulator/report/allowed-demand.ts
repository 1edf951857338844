import type { PerSecond, Millis } from '../../core/scalars.ts';
import { limitOf } from '../limit-models/limit-model-spec.ts';
import type { ClientGroup, Scenario } from '../scenario.ts';
import { meanCostOf, rateAt } from '../scenario.ts';
import type { NestedLimitSpec } from '../upstream/nested-limit-models.ts';
import { makeRequestMatcher } from '../upstream/request-match.ts';

/** The demand of the clients in units a second: all of it, and the part that the upstream's nested limits allow. */
export interface ClientDemand {
  readonly all: PerSecond;
  readonly allowed: PerSecond;
}

/**
 * The demand that the upstream's nested limits allow: what an oracle would send if the limit of
 * all requests did not exist. Where limits are nested in each other, each is applied by itself.
 */
export function allowedDemand({ clients, upstream }: Scenario): (now: Millis) => ClientDemand {
  const limits = (upstream.limits ?? []).map((spec) => ({ spec, rate: ratePerSecond(spec) }));
  const demandOf = (group: ClientGroup, now: Millis): PerSecond => group.count * rateAt(group, now) * meanCostOf(group);
  const keys = clients.map((group) => limits.map(({ spec }) => limitKey(spec, group)));
  return (now) => {
    const wanted = clients.map((group) => demandOf(group, now));
    const all = sum(wanted);
    for (const [i, { rate }] of limits.entries()) {
      const byKey = new Map<string, PerSecond>();
      for (const [g, demand] of wanted.entries()) {
        const key = keys[g]?.[i];
        if (key !== undefined) byKey.set(key, (byKey.get(key) ?? 0) + demand);
      }
      for (const [g, demand] of wanted.entries()) {
        const key = keys[g]?.[i];
        const together = key === undefined ? 0 : (byKey.get(key) ?? 0);
        if (together > rate) wanted[g] = (demand * rate) / together;
      }
    }
    return { all, allowed: sum(wanted) };
  };
}

function sum(rates: readonly PerSecond[]): PerSecond {
  return rates.reduce((total, rate) => total + rate, 0);
}

function ratePerSecond({ limit }: NestedLimitSpec): PerSecond {
  if ('window' in limit) return (1000 * limit.limit) / limit.window;
  return limit.kind === 'concurrency' ? Number.POSITIVE_INFINITY : limitOf(limit);
}

/** The limit that applies to the group's requests; undefined if none does. */
function limitKey(spec: NestedLimitSpec, group: ClientGroup): string | undefined {
  const captured = makeRequestMatcher(spec)(group);
  return captured && JSON.stringify([spec.eachMethod === true ? group.method : '', ...captured]);
}
