/** Rules for the quotas of an upstream. */
import type { PartialConfig, PartialUpstream } from '../load/partial-config.ts';
import type { Path } from '../load/mistakes.ts';
import { quotaName, reservedRequests } from '../schema/limits/quota-schema.ts';
import type { IsWritten, RuleFinding } from './rule-finding.ts';
import { mistakeAt, warningAt } from './rule-finding.ts';

/** The values of each quota agree with each other, and their names differ. @param path of the upstream */
export function* checkQuotas(path: Path, { quotas = [] }: Pick<PartialUpstream, 'quotas'>): Generator<RuleFinding> {
  const seen = new Map<string, number>();
  for (const [i, quota] of quotas.entries()) {
    const here = [...path, 'quotas', i];
    const name = quotaName(quota);
    const duplicate = seen.get(name);
    if (duplicate !== undefined) {
      const message = `quotas[${duplicate}] already has the name ${name}: give each of them a name`;
      yield mistakeAt(quota.name === undefined ? here : [...here, 'name'], message);
    }
    seen.set(name, i);
    if (quota.timezone !== undefined && quota.per.kind === 'rolling') {
      yield { ...mistakeAt([...here, 'timezone'], 'has no effect on a rolling period: leave it out'), at: 'key' };
    }
    if (reservedRequests(quota) >= quota.limit) {
      yield mistakeAt([...here, 'reserve'], 'must be less than limit: requests without priority would never be sent');
    }
  }
}

/** The quotas fit the processes that count them, and their reserves the classes of clients. */
export function* checkQuotaTopology(
  { upstreams, state, classes }: PartialConfig,
  isWritten: IsWritten,
): Generator<RuleFinding> {
  for (const [name, { quotas = [] }] of upstreams) {
    if (quotas.length === 0) continue;
    const path = ['upstreams', name, 'quotas'];
    if (state.store === 'memory' || (state.store === undefined && !isWritten(['state']))) {
      const message = 'a restart forgets what was sent: state: {store: sqlite, file: …} keeps it';
      yield warningAt(path, message, 'key');
    }
    for (const [i, quota] of quotas.entries()) {
      if (reservedRequests(quota) === 0 || classes === undefined) continue;
      if (Object.values(classes).some(({ weight }) => weight > 1)) continue;
      const message =
        'no class has a weight above 1, so no request may use the reserve: set clients.classes.NAME.weight';
      yield warningAt([...path, i, 'reserve'], message);
    }
  }
}
