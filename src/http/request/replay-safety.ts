import type { PathPattern } from '../../core/http-semantics/path-pattern.ts';
import { segmentsOf } from '../../core/http-semantics/path-pattern.ts';
import type { Nature } from '../../core/exchange/attempt-outcome.ts';
import { firstMatch, mergeSlashes } from './match-path.ts';
import type { TellNature } from './snapshot-types.ts';

/** Requests whose nature is known. */
export interface Kind {
  readonly nature: Nature;
  /** Undefined: all. */
  readonly methods: ReadonlySet<string> | undefined;
  readonly paths: readonly PathPattern[];
}

/**
 * `never` wins: what is said of both is not repeated. It holds for a path with doubled slashes too: many servers read it as the path
 * without them. Undefined where nothing is known.
 */
export function makeTellNature(kinds: readonly Kind[]): TellNature | undefined {
  if (kinds.length === 0) return undefined;
  const inOrder = kinds.toSorted((a, b) => Number(b.nature === 'never') - Number(a.nature === 'never'));
  return (method, path) => {
    const segments = segmentsOf(path);
    const merged = path.includes('//') ? segmentsOf(mergeSlashes(path)) : segments;
    const kind = inOrder.find(
      ({ nature, methods, paths }) =>
        methods?.has(method) !== false && firstMatch(paths, nature === 'never' ? merged : segments) !== undefined,
    );
    return kind?.nature;
  };
}
