import type { RuleFinding, IsWritten } from './rule-finding.ts';
import { mistakeAt } from './rule-finding.ts';
import type { PartialUpstream } from '../load/partial-config.ts';
import type { Path } from '../load/mistakes.ts';
import { toList } from '../values/one-or-many.ts';
import type { ThrottleConfig } from '../schema/config-schema.ts';
import { suggest } from '../values/suggest.ts';

/** Each rule of `throttle.answers` has a condition and an action, and can match; names of limits exist. */
export function* checkThrottle(
  path: Path,
  { throttle, limits }: Pick<PartialUpstream, 'throttle' | 'limits'>,
  isWritten: IsWritten,
): Generator<RuleFinding> {
  if (throttle === undefined) return;
  const names = limits?.map(({ name }) => name) ?? [];
  // A preset may name limits that the file has replaced.
  const isUnknown = (name: string, place: Path): boolean =>
    name !== '' && limits !== undefined && !names.includes(name) && isWritten(place);
  if (throttle.limitNames !== undefined && throttle.limitHeader === undefined) {
    yield mistakeAt([...path, 'limitNames'], 'needs limitHeader, which names the header with the limit');
  }
  for (const [value, name] of Object.entries(throttle.limitNames ?? {})) {
    const here = [...path, 'limitNames', value];
    if (isUnknown(name, here)) yield mistakeAt(here, NO_SUCH_LIMIT, suggest(name, names));
  }
  for (const [i, rule] of throttle.answers.entries()) {
    const here = [...path, 'answers', i];
    const { is, limit, wait, ...conditions } = rule;
    if (is === undefined && limit === undefined && wait === undefined) {
      yield mistakeAt(here, 'has no effect: add is, limit or wait');
    }
    if (Object.keys(conditions).length === 0) {
      yield mistakeAt(here, 'matches every response: add a condition, such as status');
    }
    if (rule.code !== undefined && throttle.codeField === undefined) {
      yield mistakeAt([...here, 'code'], 'needs codeField, the path of the code in the body');
    }
    if (rule.reason !== undefined && throttle.reasonHeader === undefined) {
      yield mistakeAt([...here, 'reason'], 'needs reasonHeader, which names the header with the reason');
    }
    for (const [j, name] of toList(limit).entries()) {
      if (!isUnknown(name, [...path, 'answers'])) continue;
      const place = typeof limit === 'string' ? [...here, 'limit'] : [...here, 'limit', j];
      yield mistakeAt(place, NO_SUCH_LIMIT, suggest(name, names));
    }
    yield* checkSuccessRule(here, rule);
  }
}

const NO_SUCH_LIMIT = 'no entry of limits has this name';

/** A rule that matches successes has to be specific. */
function* checkSuccessRule(
  here: Path,
  { status, code, header, is }: ThrottleConfig['answers'][number],
): Generator<RuleFinding> {
  const matchesSuccess = status === undefined || toList(status).some((each) => each < 400);
  if (!matchesSuccess || is === undefined || is === 'answer') return;
  if (is === 'lock') {
    yield mistakeAt([...here, 'is'], 'a lock is an error: it needs a status of 400 or more');
  } else if (code === undefined && header === undefined) {
    yield mistakeAt(
      [...here, 'is'],
      'would turn every success into a rejection: add code, header, or a status of 400 or more',
    );
  }
}
