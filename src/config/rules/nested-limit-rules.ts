/** What has to fit together in the nested limits of an upstream. */
import { makePathPattern } from '../../core/http-semantics/path-pattern.ts';
import type { Checked, Written } from './rule-finding.ts';
import { mistake, warning } from './rule-finding.ts';
import { checkRates } from './rate-bound-rules.ts';
import type { DraftUpstream } from '../load/partial-config.ts';
import type { Path } from '../load/mistakes.ts';

/** @param path of the upstream */
export function* checkLimits(
  path: Path,
  { limits = [] }: Pick<DraftUpstream, 'limits'>,
  written: Written,
): Generator<Checked> {
  const seen = new Map<string, number>();
  for (const [i, limit] of limits.entries()) {
    const here = [...path, 'limits', i];
    const twin = seen.get(limit.name);
    if (twin !== undefined) yield mistake([...here, 'name'], `limits[${twin}] has this name`);
    seen.set(limit.name, i);
    const paths = listOf(limit.match.path).map((text) => makePathPattern(text).names.join(', '));
    const other = paths.findIndex((names) => names !== paths[0]);
    const isEachPath = limit.each.includes('path');
    if (other > 0 && !isEachPath) yield mistake([...here, 'match', 'path', other], UNLIKE);
    if (isEachPath && limit.match.path === undefined) {
      yield warning([...here, 'each'], 'has no effect for path: no match.path is there');
    }
    yield* checkRates(here, limit, written);
    if (new Set(limit.each).size < limit.each.length) yield warning([...here, 'each'], 'says the same twice');
  }
}

const UNLIKE =
  'names other segments than the first: all patterns of a limit name the same, in the same order, unless each has path';

/** Where one may be written without a list. */
export function listOf<T extends string>(one: T | readonly T[] | undefined): readonly T[] {
  if (one === undefined) return [];
  return typeof one === 'string' ? [one] : one;
}
