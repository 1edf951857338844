import type { RuleFinding, IsWritten } from './rule-finding.ts';
import { mistakeAt } from './rule-finding.ts';
import type { PartialUpstream } from '../load/partial-config.ts';
import type { Path } from '../load/mistakes.ts';
import { toList } from '../values/one-or-many.ts';
import type { ThrottleConfig } from '../schema/config-schema.ts';
import { suggest } from '../values/suggest.ts';

/** Each rule of `throttle.answers` has a condition and an action, and can match. */
export function* checkThrottle(
  path: Path,
  { throttle, limits }: Pick<PartialUpstream, 'throttle' | 'limits'>,
  isWritten: IsWritten,
): Generator<RuleFinding> {
  if (throttle === undefined) return;
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
    const names = limits?.map(({ name }) => name) ?? [];
    for (const [j, name] of toList(limit).entries()) {
      // The rules of a preset may name limits that the file has replaced.
      if (name === '' || limits === undefined || names.includes(name) || !isWritten([...path, 'answers'])) continue;
      const place = typeof limit === 'string' ? [...here, 'limit'] : [...here, 'limit', j];
      yield mistakeAt(place, 'no entry of limits has this name', suggest(name, names));
    }
    yield* checkSuccessRule(here, rule);
  }
}

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
