import type { PathPattern } from '../../core/http-semantics/path-pattern.ts';
import { makePathPattern, segmentsOf } from '../../core/http-semantics/path-pattern.ts';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import type { ModelSpec } from '../limit-models/limit-model-spec.ts';
import { makeModel } from '../limit-models/limit-model-spec.ts';
import type { LimitModel } from '../limit-models/limit-model.ts';

/** A limit of some of an upstream's requests, beneath the one of all of them. */
export interface NestedSpec {
  readonly name: string;
  /** Of whose requests: patterns, of which one must match, and methods; all where absent. A `{name}` makes a limit for each value. */
  readonly path?: readonly string[];
  readonly method?: readonly string[];
  /** Also one for each method. */
  readonly eachMethod?: boolean;
  readonly limit: ModelSpec;
  /** What a refusal for it gives as its reason. */
  readonly reason?: string;
}

/** Which request it is, to a limit of some. */
export interface Asked {
  readonly method: string;
  readonly path: string;
}

/** A refusal for a nested limit. */
export interface Overstepped {
  readonly limit: string;
  readonly reason: string | undefined;
  readonly wait: Millis;
}

/** Whoever makes up paths gets no more limits of their own than this; the oldest begin anew. */
const MOST = 10_000;

/** The nested limits of an upstream, as it enforces them. */
export class NestedLimits {
  readonly #specs: readonly { readonly spec: NestedSpec; readonly patterns: readonly PathPattern[] | undefined }[];
  readonly #models = new Map<string, LimitModel>();

  /** @throws RangeError when a number of a spec is out of its range */
  constructor(specs: readonly NestedSpec[]) {
    for (const { limit } of specs) makeModel(limit); // throws now, not at a request
    this.#specs = specs.map((spec) => ({ spec, patterns: spec.path?.map(makePathPattern) }));
  }

  /** Charges all that it stands under, or those before the first that refuses it: real upstreams seldom give back. */
  arrive(asked: Asked, now: Millis): Overstepped | undefined {
    const passed: LimitModel[] = [];
    for (const [spec, model] of this.#modelsOf(asked)) {
      const admission = model.arrive(now);
      if (!admission.accepted) {
        for (const each of passed) each.leave(now);
        return { limit: spec.name, reason: spec.reason, wait: admission.retryAfter };
      }
      passed.push(model);
    }
    return undefined;
  }

  /** One that all of them had accepted has ended. */
  leave(asked: Asked, now: Millis): void {
    for (const [, model] of this.#modelsOf(asked)) model.leave(now);
  }

  #modelsOf({ method, path }: Asked): [NestedSpec, LimitModel][] {
    if (this.#specs.length === 0) return [];
    const segments = segmentsOf(path);
    const found: [NestedSpec, LimitModel][] = [];
    for (const { spec, patterns } of this.#specs) {
      if (spec.method !== undefined && !spec.method.includes(method)) continue;
      const captured = patterns === undefined ? [] : firstMatch(patterns, segments);
      if (captured === undefined) continue;
      const key = JSON.stringify([spec.name, spec.eachMethod === true ? method : '', ...captured]);
      found.push([spec, this.#modelOf(key, spec)]);
    }
    return found;
  }

  #modelOf(key: string, { limit }: NestedSpec): LimitModel {
    const known = this.#models.get(key);
    if (known !== undefined) return known;
    const model = makeModel(limit);
    this.#models.set(key, model);
    const oldest = this.#models.size > MOST ? this.#models.keys().next().value : undefined;
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
