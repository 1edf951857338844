import type { Millis } from '../../core/scalars.ts';
import type { NestableLimitSpec } from '../limit-models/limit-model-spec.ts';
import { makeLimitModel } from '../limit-models/limit-model-spec.ts';
import type { LimitModel } from '../limit-models/limit-model.ts';
import type { MethodAndPath, RequestMatch } from './request-match.ts';
import { makeRequestMatcher } from './request-match.ts';

/**
 * A limit of some of an upstream's requests, nested in the limit of all of them. A `{name}` in a pattern makes a limit for each
 * value.
 */
export interface NestedLimitSpec extends RequestMatch {
  readonly name: string;
  /** Also makes a limit for each method. */
  readonly eachMethod?: boolean;
  readonly limit: NestableLimitSpec;
  /** The reason that a rejection by it gives. */
  readonly reason?: string;
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
  readonly #limits: readonly {
    readonly spec: NestedLimitSpec;
    readonly match: ReturnType<typeof makeRequestMatcher>;
  }[];
  readonly #models = new Map<string, LimitModel>();

  /** @throws RangeError when a number of a spec is out of its range */
  constructor(specs: readonly NestedLimitSpec[]) {
    for (const { limit } of specs) makeLimitModel(limit); // throws here, not at a request
    this.#limits = specs.map((spec) => ({ spec, match: makeRequestMatcher(spec) }));
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

  #findModels(request: MethodAndPath): [NestedLimitSpec, LimitModel][] {
    const found: [NestedLimitSpec, LimitModel][] = [];
    for (const { spec, match } of this.#limits) {
      const captured = match(request);
      if (captured === undefined) continue;
      const key = JSON.stringify([spec.name, spec.eachMethod === true ? request.method : '', ...captured]);
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
