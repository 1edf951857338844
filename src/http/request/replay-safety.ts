import type { PathPattern } from '../../core/http-semantics/path-pattern.ts';
import { segmentsOf } from '../../core/http-semantics/path-pattern.ts';
import type { ReplaySafety } from '../../core/exchange/request-facts.ts';
import { firstMatchingPattern, mergeSlashes } from './match-path.ts';
import type { ClassifyReplaySafety } from './route.ts';

/** Requests of which the configuration says whether they can be repeated. */
export interface ReplaySafetyRule {
  readonly safety: ReplaySafety;
  /** Undefined: all. */
  readonly methods: ReadonlySet<string> | undefined;
  readonly paths: readonly PathPattern[];
}

/**
 * Classifies requests by method and path. `never` wins if rules of both kinds match. It matches a path with doubled slashes too,
 * because many servers merge them. Undefined if there are no rules; the classifier returns undefined if none matches.
 */
export function makeReplaySafetyClassifier(rules: readonly ReplaySafetyRule[]): ClassifyReplaySafety | undefined {
  if (rules.length === 0) return undefined;
  const inOrder = rules.toSorted((a, b) => Number(b.safety === 'never') - Number(a.safety === 'never'));
  return (method, path) => {
    const segments = segmentsOf(path);
    const collapsedSegments = path.includes('//') ? segmentsOf(mergeSlashes(path)) : segments;
    const rule = inOrder.find(
      ({ safety, methods, paths }) =>
        methods?.has(method) !== false &&
        firstMatchingPattern(paths, safety === 'never' ? collapsedSegments : segments) !== undefined,
    );
    return rule?.safety;
  };
}
