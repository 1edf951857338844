/** Rules for the nested limits of an upstream. */
import { makePathPattern } from '../../core/http-semantics/path-pattern.ts';
import type { RuleFinding, IsWritten } from './rule-finding.ts';
import { mistakeAt, warningAt } from './rule-finding.ts';
import { checkRateBounds } from './rate-bound-rules.ts';
import type { PartialUpstream } from '../load/partial-config.ts';
import type { Path } from '../load/mistakes.ts';
import { toList } from '../values/one-or-many.ts';

/** @param path of the upstream */
export function* checkNestedLimits(
  path: Path,
  { limits = [] }: Pick<PartialUpstream, 'limits'>,
  isWritten: IsWritten,
): Generator<RuleFinding> {
  const seen = new Map<string, number>();
  for (const [i, limit] of limits.entries()) {
    const here = [...path, 'limits', i];
    const duplicate = seen.get(limit.name);
    if (duplicate !== undefined) yield mistakeAt([...here, 'name'], `limits[${duplicate}] already has this name`);
    seen.set(limit.name, i);
    const paths = toList(limit.match.path).map((text) => makePathPattern(text).names.join(', '));
    const other = paths.findIndex((names) => names !== paths[0]);
    const isEachPath = limit.each.includes('path');
    if (other > 0 && !isEachPath) yield mistakeAt([...here, 'match', 'path', other], UNEQUAL_SEGMENTS);
    if (isEachPath && limit.match.path === undefined) {
      yield warningAt([...here, 'each'], 'path has no effect without match.path');
    }
    yield* checkRateBounds(here, limit, isWritten);
    if (new Set(limit.each).size < limit.each.length) yield warningAt([...here, 'each'], 'has a duplicate');
  }
}

const UNEQUAL_SEGMENTS =
  'names other segments than the first pattern: all patterns of a limit must name the same segments in the same order, unless each contains path';
