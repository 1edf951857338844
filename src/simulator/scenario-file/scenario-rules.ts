/** The rules across the fields of a scenario. */
import { checkBackOffs } from '../../config/rules/retry-rules.ts';
import type { RuleFinding } from '../../config/rules/rule-finding.ts';
import { mistakeAt, warningAt } from '../../config/rules/rule-finding.ts';
import { checkNamesAndZones } from '../../config/rules/quota-rules.ts';
import { toList } from '../../config/values/one-or-many.ts';
import { checkPacing } from '../../config/rules/config-rules.ts';
import { parsePartialUpstream, parseIfValid } from '../../config/load/partial-config.ts';
import { valueAt } from '../../config/values/plain-object.ts';
import type { Path } from '../../config/load/mistakes.ts';
import { NAME_EXPECTED, NAME_PATTERN } from '../../config/schema/name-schemas.ts';
import type { SourceMap } from '../../config/load/source-map.ts';
import { ScenarioSchema } from './scenario-schema.ts';
import { suggest } from '../../config/values/suggest.ts';
import { formatDuration } from '../../config/values/unit-schemas.ts';

const MAX_DURATION_MS = 86_400_000;
/** Lists of what has a beginning and an end. */
const TIMED: readonly Path[] = [
  ['pauses'],
  ['clients'],
  ['upstream', 'errors'],
  ['upstream', 'outages'],
  ['upstream', 'limit', 'slowdowns'],
];
const { shape } = ScenarioSchema;

/** @param root as written, valid or not */
export function* checkScenarioRules(root: object, sourceMap: SourceMap): Generator<RuleFinding> {
  yield* checkTimes(root);
  yield* checkUpstreamLimit(root);
  yield* checkClientGroups(root);
  const policy = parsePartialUpstream(valueAt(root, ['policy']) ?? {});
  yield* checkPacing(['policy'], policy, (path) => sourceMap.isWritten(path));
  yield* checkBackOffs(['policy', 'retry'], policy.retry);
  if ((policy.quotas?.length ?? 0) > 0) yield* checkQuotaReplicas(root, 'quotas');
  yield* checkClasses(root);
}

function* checkClasses(root: object): Generator<RuleFinding> {
  const classes = parseIfValid(shape.policy.unwrap().shape.classes, valueAt(root, ['policy', 'classes'])) ?? {};
  const names = Object.keys(classes);
  if (names.length > 0) yield* checkQuotaReplicas(root, 'classes');
  for (const [name, { quota, perClient }] of Object.entries(classes)) {
    const path = ['policy', 'classes', name];
    yield* checkNamesAndZones([...path, 'quota'], toList(quota), Array.isArray(quota));
    yield* checkNamesAndZones(
      [...path, 'perClient', 'quota'],
      toList(perClient?.quota),
      Array.isArray(perClient?.quota),
    );
  }
  for (const [i, group] of listAt(root, ['clients']).entries()) {
    const name = valueAt(group, ['class']);
    if (typeof name !== 'string' || names.includes(name)) continue;
    yield mistakeAt(['clients', i, 'class'], 'no class of policy.classes has this name', suggest(name, names));
  }
}

/** As in the configuration of the proxy: quotas are those of one process. */
function* checkQuotaReplicas(root: object, key: 'quotas' | 'classes'): Generator<RuleFinding> {
  const replicas = parseIfValid(shape.replicas, valueAt(root, ['replicas'])) ?? 1;
  const isShared = ['lease', 'pool'].some((each) => valueAt(root, [each]) !== undefined);
  if (replicas === 1 && !isShared) return;
  const message = 'not supported with several replicas, a lease or a pool, which would each count their own';
  yield { ...mistakeAt(['policy', key], message, 'replicas: 1'), at: 'key' };
}

function* checkTimes(root: object): Generator<RuleFinding> {
  const duration = parseIfValid(shape.duration, valueAt(root, ['duration']));
  if (duration !== undefined && duration > MAX_DURATION_MS) yield mistakeAt(['duration'], 'must be at most 24h');
  const warmup = parseIfValid(shape.warmup, valueAt(root, ['warmup']));
  if (duration !== undefined && warmup !== undefined && warmup >= duration) {
    const message = `not shorter than duration (${formatDuration(duration)}): nothing would be counted`;
    yield mistakeAt(['warmup'], message);
  }
  for (const path of TIMED) {
    for (const [i, span] of listAt(root, path).entries()) yield* checkTimeSpan([...path, i], span, duration);
  }
  let end = 0;
  for (const [i, pause] of (parseIfValid(shape.pauses, valueAt(root, ['pauses'])) ?? []).entries()) {
    if (pause.from < end) yield mistakeAt(['pauses', i], 'begins before the one above has ended');
    end = pause.to;
  }
}

function* checkTimeSpan(path: Path, span: unknown, duration: number | undefined): Generator<RuleFinding> {
  const writtenFrom = valueAt(span, ['from']);
  const from = writtenFrom === undefined ? 0 : parseIfValid(shape.duration, writtenFrom);
  const to = parseIfValid(shape.duration, valueAt(span, ['to']) ?? '24h');
  if (from !== undefined && to !== undefined && to <= from) yield mistakeAt([...path, 'to'], 'not after from');
  if (from !== undefined && duration !== undefined && from >= duration) {
    yield warningAt([...path, 'from'], `not before the end of the run (${formatDuration(duration)}): it never begins`);
  }
}

function* checkUpstreamLimit(root: object): Generator<RuleFinding> {
  const { limit: limitSchema, latency: latencySchema } = shape.upstream.shape;
  const limit = parseIfValid(limitSchema, valueAt(root, ['upstream', 'limit']));
  if (limit === undefined) return;
  const latency = parseIfValid(latencySchema, valueAt(root, ['upstream', 'latency']));
  if ((limit.kind === 'concurrency' || limit.kind === 'workers') && latency?.mean === 0) {
    yield mistakeAt(
      ['upstream', 'latency'],
      `required with kind ${limit.kind}: the number of requests in flight depends on it`,
    );
  }
  const wanted = 'rate' in limit ? 'string' : 'number';
  for (const [i, step] of listAt(root, ['upstream', 'steps']).entries()) {
    const path = ['upstream', 'steps', i, 'limit'];
    const written = valueAt(step, ['limit']);
    if (limit.kind === 'unlimited') yield warningAt(path, 'has no effect with kind unlimited');
    else if ((typeof written === 'string' || typeof written === 'number') && typeof written !== wanted) {
      yield mistakeAt(
        path,
        `with kind ${limit.kind}, ${wanted === 'string' ? 'a rate such as 40/s' : 'a number such as 40'} is expected`,
      );
    }
  }
}

function* checkClientGroups(root: object): Generator<RuleFinding> {
  const names: string[] = [];
  for (const [i, group] of listAt(root, ['clients']).entries()) {
    const path = ['clients', i];
    const name = parseIfValid(shape.clients.element.shape.name, valueAt(group, ['name']));
    if (name !== undefined && names.includes(name)) yield mistakeAt([...path, 'name'], 'another group has this name');
    if (name !== undefined && !NAME_PATTERN.test(name)) yield mistakeAt([...path, 'name'], NAME_EXPECTED);
    if (name !== undefined) names.push(name);
    yield* checkDemand(path, group);
    for (const [j, step] of listAt(group, ['steps']).entries()) yield* checkDemand([...path, 'steps', j], step);
  }
  for (const name of Object.keys(valueAt(root, ['goals', 'groups']) ?? {})) {
    if (names.includes(name)) continue;
    yield { ...mistakeAt(['goals', 'groups', name], 'no group has this name', suggest(name, names)), at: 'key' };
  }
}

function* checkDemand(path: Path, written: unknown): Generator<RuleFinding> {
  if (typeof written !== 'object' || written === null) return;
  const has = (key: string): boolean => Object.hasOwn(written, key);
  if (has('rate') && has('total')) yield mistakeAt([...path, 'total'], 'rate (of each) or total (of all), not both');
  if (!has('rate') && !has('total')) yield mistakeAt(path, 'rate (of each) or total (of all) is required');
}

function listAt(root: unknown, path: Path): readonly unknown[] {
  const value = valueAt(root, path);
  return Array.isArray(value) ? value : [];
}
