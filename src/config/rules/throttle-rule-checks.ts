import type { Checked, Written } from './rule-finding.ts';
import { mistake } from './rule-finding.ts';
import type { DraftUpstream } from '../load/partial-config.ts';
import type { Path } from '../load/mistakes.ts';
import { listOf } from '../values/one-or-many.ts';
import type { ThrottleConfig } from '../schema/config-schema.ts';
import { suggest } from '../values/suggest.ts';

/** Each rule asks for something and says something, of answers that it can be about. */
export function* checkThrottle(
  path: Path,
  { throttle, limits }: Pick<DraftUpstream, 'throttle' | 'limits'>,
  written: Written,
): Generator<Checked> {
  if (throttle === undefined) return;
  for (const [i, rule] of throttle.answers.entries()) {
    const here = [...path, 'answers', i];
    const { is, limit, wait, ...conditions } = rule;
    if (is === undefined && limit === undefined && wait === undefined) {
      yield mistake(here, 'says nothing of the answers that fit: is, limit or wait');
    }
    if (Object.keys(conditions).length === 0) {
      yield mistake(here, 'fits every answer: it needs a condition, such as status');
    }
    if (rule.code !== undefined && throttle.codeField === undefined) {
      yield mistake([...here, 'code'], 'needs codeField, which says where a code stands');
    }
    if (rule.reason !== undefined && throttle.reasonHeader === undefined) {
      yield mistake([...here, 'reason'], 'needs reasonHeader, which says where a reason stands');
    }
    const names = limits?.map(({ name }) => name) ?? [];
    for (const [j, name] of listOf(limit ?? []).entries()) {
      // Of a preset whose limits are not wanted, the rules mean nothing by them.
      if (name === '' || limits === undefined || names.includes(name) || !written([...path, 'answers'])) continue;
      const place = typeof limit === 'string' ? [...here, 'limit'] : [...here, 'limit', j];
      yield mistake(place, 'no limit of limits has this name', suggest(name, names));
    }
    yield* checkSuccess(here, rule);
  }
}

/** Of answers that say that something was done. */
function* checkSuccess(
  here: Path,
  { status, code, header, is }: ThrottleConfig['answers'][number],
): Generator<Checked> {
  const takesSuccess = status === undefined || listOf(status).some((each) => each < 400);
  if (!takesSuccess || is === undefined || is === 'answer') return;
  if (is === 'lock') {
    yield mistake([...here, 'is'], 'a lock is a refusal: it needs a status of 400 or more');
  } else if (code === undefined && header === undefined) {
    yield mistake(
      [...here, 'is'],
      'would make a refusal of every success: it needs a code, a header, or a status of 400 or more',
    );
  }
}
