/** What has to fit together in a scenario. */
import { checkBackOffs } from '../../config/rules/retry-rules.ts';
import type { Checked } from '../../config/rules/rule-finding.ts';
import { mistake, warning } from '../../config/rules/rule-finding.ts';
import { checkPacing } from '../../config/rules/config-rules.ts';
import { draftUpstream, sound } from '../../config/load/partial-config.ts';
import { valueAt } from '../../config/load/schema-issues.ts';
import type { Path } from '../../config/load/mistakes.ts';
import { NAME } from '../../config/schema/name-schemas.ts';
import type { Places } from '../../config/load/source-map.ts';
import { ScenarioSchema } from './scenario-schema.ts';
import { suggest } from '../../config/values/suggest.ts';
import { writeDuration } from '../../config/values/unit-schemas.ts';

const LONGEST = 86_400_000;
const { shape } = ScenarioSchema;

/** @param root as written, sound or not */
export function* checkScenario(root: object, places: Places): Generator<Checked> {
  yield* checkTimes(root);
  yield* checkLimit(root);
  yield* checkGroups(root);
  const policy = draftUpstream(valueAt(root, ['policy']) ?? {});
  yield* checkPacing(['policy'], policy, (path) => places.has(path));
  yield* checkBackOffs(['policy', 'retry'], policy.retry);
}

function* checkTimes(root: object): Generator<Checked> {
  const duration = sound(shape.duration, valueAt(root, ['duration']));
  if (duration !== undefined && duration > LONGEST) yield mistake(['duration'], 'must be at most 24h');
  const warmup = sound(shape.warmup, valueAt(root, ['warmup']));
  if (duration !== undefined && warmup !== undefined && warmup >= duration) {
    const message = `not shorter than duration (${writeDuration(duration)}): nothing would be counted`;
    yield mistake(['warmup'], message);
  }
  for (const path of [['pauses'], ['clients'], ['upstream', 'errors'], ['upstream', 'outages']]) {
    for (const [i, span] of listAt(root, path).entries()) yield* checkSpan([...path, i], span, duration);
  }
  let end = 0;
  for (const [i, pause] of (sound(shape.pauses, valueAt(root, ['pauses'])) ?? []).entries()) {
    if (pause.from < end) yield mistake(['pauses', i], 'begins before the one above has ended');
    end = pause.to;
  }
}

function* checkSpan(path: Path, span: unknown, duration: number | undefined): Generator<Checked> {
  const given = valueAt(span, ['from']);
  const from = given === undefined ? 0 : sound(shape.duration, given);
  const to = sound(shape.duration, valueAt(span, ['to']) ?? '24h');
  if (from !== undefined && to !== undefined && to <= from) yield mistake([...path, 'to'], 'not after from');
  if (from !== undefined && duration !== undefined && from >= duration) {
    yield warning([...path, 'from'], `not before the end of the run (${writeDuration(duration)}): it never begins`);
  }
}

function* checkLimit(root: object): Generator<Checked> {
  const { limit: limitSchema, latency: latencySchema } = shape.upstream.shape;
  const limit = sound(limitSchema, valueAt(root, ['upstream', 'limit']));
  if (limit === undefined) return;
  const latency = sound(latencySchema, valueAt(root, ['upstream', 'latency']));
  if (limit.kind === 'concurrency' && latency?.mean === 0) {
    yield mistake(['upstream', 'latency'], 'needed with kind concurrency: how many are in flight depends on it');
  }
  const wanted = 'rate' in limit ? 'string' : 'number';
  for (const [i, step] of listAt(root, ['upstream', 'steps']).entries()) {
    const path = ['upstream', 'steps', i, 'limit'];
    const written = valueAt(step, ['limit']);
    if (limit.kind === 'unlimited') yield warning(path, 'has no effect with kind unlimited');
    else if ((typeof written === 'string' || typeof written === 'number') && typeof written !== wanted) {
      yield mistake(
        path,
        wanted === 'string' ? `a ${limit.kind} has a rate, such as 40/s` : `a ${limit.kind} has a number, such as 40`,
      );
    }
  }
}

function* checkGroups(root: object): Generator<Checked> {
  const names: string[] = [];
  for (const [i, group] of listAt(root, ['clients']).entries()) {
    const path = ['clients', i];
    const name = sound(shape.clients.element.shape.name, valueAt(group, ['name']));
    if (name !== undefined && names.includes(name)) yield mistake([...path, 'name'], 'another group has this name');
    if (name !== undefined && !NAME.test(name)) yield mistake([...path, 'name'], NOT_A_NAME);
    if (name !== undefined) names.push(name);
    yield* checkDemand(path, group);
    for (const [j, step] of listAt(group, ['steps']).entries()) yield* checkDemand([...path, 'steps', j], step);
  }
  for (const name of Object.keys(valueAt(root, ['goals', 'groups']) ?? {})) {
    if (names.includes(name)) continue;
    yield { ...mistake(['goals', 'groups', name], 'no group has this name', suggest(name, names)), at: 'key' };
  }
}

const NOT_A_NAME = 'a name starts with a letter, and has at most 64 letters, digits, ".", "_" and "-"';

function* checkDemand(path: Path, written: unknown): Generator<Checked> {
  if (typeof written !== 'object' || written === null) return;
  const has = (key: string): boolean => Object.hasOwn(written, key);
  if (has('rate') && has('total')) yield mistake([...path, 'total'], 'rate (of each) or total (of all), not both');
  if (!has('rate') && !has('total')) yield mistake(path, 'rate (of each) or total (of all) is needed');
}

function listAt(root: unknown, path: Path): readonly unknown[] {
  const value = valueAt(root, path);
  return Array.isArray(value) ? value : [];
}
