/** Rules for the quotas of upstreams and of clients. */
import type { PartialConfig, PartialUpstream } from '../load/partial-config.ts';
import type { Path } from '../load/mistakes.ts';
import { type ClientQuotaConfig, quotaName, reservedRequests } from '../schema/limits/quota-schema.ts';
import { toList } from '../values/one-or-many.ts';
import type { IsWritten, RuleFinding } from './rule-finding.ts';
import { mistakeAt, warningAt } from './rule-finding.ts';

/** The values of each quota agree with each other, and their names differ. @param path of the upstream */
export function* checkQuotas(path: Path, { quotas = [] }: Pick<PartialUpstream, 'quotas'>): Generator<RuleFinding> {
  yield* checkNamesAndZones([...path, 'quotas'], quotas, true);
  for (const [i, quota] of quotas.entries()) {
    if (reservedRequests(quota) >= quota.limit) {
      const message = 'must be less than limit: requests without priority would never be sent';
      yield mistakeAt([...path, 'quotas', i, 'reserve'], message);
    }
  }
}

/** Quotas of one list have different names, and only those of a calendar a time zone. */
export function* checkNamesAndZones(
  path: Path,
  quotas: readonly ClientQuotaConfig[],
  isListed: boolean,
): Generator<RuleFinding> {
  const seen = new Map<string, number>();
  for (const [i, quota] of quotas.entries()) {
    const here = isListed ? [...path, i] : path;
    const name = quotaName(quota);
    const duplicate = seen.get(name);
    if (duplicate !== undefined) {
      const message = `${path.at(-1)}[${duplicate}] already has the name ${name}: set a different name`;
      yield mistakeAt(quota.name === undefined ? here : [...here, 'name'], message);
    }
    seen.set(name, i);
    if (quota.timezone !== undefined && quota.per.kind === 'rolling') {
      yield { ...mistakeAt([...here, 'timezone'], 'has no effect on a rolling period: leave it out'), at: 'key' };
    }
  }
}

/** The quotas of classes and their clients agree with each other, and no client can leave its own by another name. */
export function* checkClientQuotas(
  { classes = {}, state }: PartialConfig,
  isWritten: IsWritten,
): Generator<RuleFinding> {
  yield* checkClassesChosenByHeader(classes);
  for (const [name, { quota, perClient }] of Object.entries(classes)) {
    const path = ['clients', 'classes', name];
    yield* checkNamesAndZones([...path, 'quota'], toList(quota), Array.isArray(quota));
    const ofClient = perClient?.quota;
    yield* checkNamesAndZones([...path, 'perClient', 'quota'], toList(ofClient), Array.isArray(ofClient));
    if (perClient !== undefined && !isWritten(['clients', 'auth'])) yield mistakeAt([...path, 'perClient'], NOT_PROVEN);
    if (perClient !== undefined && Object.keys(perClient).length === 0) {
      yield mistakeAt([...path, 'perClient'], 'set maxRate, quota or both, or leave it out');
    }
    if (!isForgetful(state, isWritten)) continue;
    if (quota !== undefined) yield warningAt([...path, 'quota'], FORGOTTEN, 'key');
    if (ofClient !== undefined) yield warningAt([...path, 'perClient', 'quota'], FORGOTTEN, 'key');
  }
}

const NOT_PROVEN = 'needs clients.auth: without it, a client that has used up its quota or rate can claim another name';

/** The first class that matches applies, and clients choose their headers. */
function* checkClassesChosenByHeader(classes: NonNullable<PartialConfig['classes']>): Generator<RuleFinding> {
  const entries = Object.entries(classes);
  const last = entries.findLastIndex(([, { quota, perClient }]) => quota !== undefined || perClient !== undefined);
  for (const [i, [name, { match, quota, perClient }]] of entries.slice(0, last + 1).entries()) {
    if (match.header === undefined) continue;
    const key = perClient === undefined ? 'quota' : 'perClient';
    const isOwn = quota !== undefined || perClient !== undefined;
    const [later] =
      entries.slice(i + 1).find(([, each]) => each.quota !== undefined || each.perClient !== undefined) ?? [];
    const message = isOwn
      ? `a client can leave a class with ${key} by omitting this header: match by key, the name of the client`
      : `a client can leave the class ${later}, which has a quota or perClient, by sending this header: match by key, or move this class after it`;
    yield warningAt(['clients', 'classes', name, 'match', 'header'], message);
  }
}

const FORGOTTEN = 'a restart resets the count; set state: {store: sqlite, file: …} to keep it';

function isForgetful({ store }: PartialConfig['state'], isWritten: IsWritten): boolean {
  return store === 'memory' || (store === undefined && !isWritten(['state']));
}

/** The quotas fit the processes that count them, and their reserves the classes of clients. */
export function* checkQuotaTopology(
  { upstreams, state, classes }: PartialConfig,
  isWritten: IsWritten,
): Generator<RuleFinding> {
  for (const [name, { quotas = [] }] of upstreams) {
    if (quotas.length === 0) continue;
    const path = ['upstreams', name, 'quotas'];
    if (isForgetful(state, isWritten)) yield warningAt(path, FORGOTTEN, 'key');
    for (const [i, quota] of quotas.entries()) {
      if (reservedRequests(quota) === 0 || classes === undefined) continue;
      if (Object.values(classes).some(({ weight }) => weight > 1)) continue;
      const message =
        'no class has a weight above 1, so no request may use the reserve: set clients.classes.NAME.weight';
      yield warningAt([...path, i, 'reserve'], message);
    }
  }
}
