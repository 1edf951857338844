import type { PathPattern } from '../../core/http-semantics/path-pattern.ts';
import { makePathPattern, segmentsOf } from '../../core/http-semantics/path-pattern.ts';
import type { Millis } from '../../core/scalars.ts';
import type { LimitModelSpec } from '../limit-models/limit-model-spec.ts';
import { makeLimitModel } from '../limit-models/limit-model-spec.ts';
import type { LimitModel } from '../limit-models/limit-model.ts';

/** A limit of some of an upstream's requests, nested in the limit of all of them. */
export interface NestedLimitSpec {
  readonly name: string;
  /**
   * The requests it applies to: path patterns, of which one must match, and methods; all when absent. A `{name}` in a
   * pattern makes a limit for each value.
   */
  readonly path?: readonly string[];
  readonly method?: readonly string[];
  /** Also makes a limit for each method. */
  readonly eachMethod?: boolean;
  readonly limit: LimitModelSpec;
  /** The reason that a rejection by it gives. */
  readonly reason?: string;
}

/** The part of a request that nested limits match. */
export interface MethodAndPath {
  readonly method: string;
  readonly path: string;
}

/** A rejection by a nested limit. */
export interface NestedLimitRejection {
  readonly limit: string;
  readonly reason: string | undefined;
  readonly retryAfterMs: Millis;
}

/** The most limits kept for values of a pattern, since clients can make up paths. The oldest are dropped and start afresh. */
const MAX_MODELS = 10_000;

/** The nested limits of an upstream, as it enforces them. */
export class NestedLimitModels {
  readonly #specs: readonly { readonly spec: NestedLimitSpec; readonly patterns: readonly PathPattern[] | undefined }[];
  readonly #models = new Map<string, LimitModel>();

  /** @throws RangeError when a number of a spec is out of its range */
  constructor(specs: readonly NestedLimitSpec[]) {
    for (const { limit } of specs) makeLimitModel(limit); // throws here, not at a request
    this.#specs = specs.map((spec) => ({ spec, patterns: spec.path?.map(makePathPattern) }));
  }

  /**
   * Charges each limit that applies, up to the first that rejects. Earlier ones are not refunded, as with most real
   * upstreams.
   */
  tryAcquire(request: MethodAndPath, now: Millis): NestedLimitRejection | undefined {
    const acquired: LimitModel[] = [];
    for (const [spec, model] of this.#findModels(request)) {
      const admission = model.tryAcquire(now);
      if (!admission.accepted) {
        for (const each of acquired) each.release(now);
        return { limit: spec.name, reason: spec.reason, retryAfterMs: admission.retryAfterMs };
      }
      acquired.push(model);
    }
    return undefined;
  }

  /** Ends a request that every limit accepted. */
  release(request: MethodAndPath, now: Millis): void {
    for (const [, model] of this.#findModels(request)) model.release(now);
  }

  #findModels({ method, path }: MethodAndPath): [NestedLimitSpec, LimitModel][] {
    if (this.#specs.length === 0) return [];
    const segments = segmentsOf(path);
    const found: [NestedLimitSpec, LimitModel][] = [];
    for (const { spec, patterns } of this.#specs) {
      if (spec.method !== undefined && !spec.method.includes(method)) continue;
      const captured = patterns === undefined ? [] : firstMatch(patterns, segments);
      if (captured === undefined) continue;
      const key = JSON.stringify([spec.name, spec.eachMethod === true ? method : '', ...captured]);
      found.push([spec, this.#getOrMakeModel(key, spec)]);
    }
    return found;
  }

  #getOrMakeModel(key: string, { limit }: NestedLimitSpec): LimitModel {
    const known = this.#models.get(key);
    if (known !== undefined) return known;
    const model = makeLimitModel(limit);
    this.#models.set(key, model);
    const oldest = this.#models.size > MAX_MODELS ? this.#models.keys().next().value : undefined;
    if (oldest !== undefined) this.#models.delete(oldest);
    return model;
  }
}

function firstMatch(patterns: readonly PathPattern[], segments: readonly string[]): readonly string[] | undefined {
  for (const pattern of patterns) {
    const captured = pattern.match(segments);
    if (captured !== undefined) return captured;
  }
  return undefined;
}
