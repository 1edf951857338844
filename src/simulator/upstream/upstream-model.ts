import { type AccountSpec, makeAccountModels } from './account-limit-models.ts';
import type { Hints, Quota } from '../../core/hints/hints.ts';
import type { Millis, Random } from '../../core/scalars.ts';
import { NO_HINTS } from '../../core/hints/hints.ts';
import type { HintStyle } from '../../config/schema/hint-styles.ts';
import { buildHints, includesQuota } from './hint-style.ts';
import type { LatencySpec } from './latency-model.ts';
import { makeLatencySampler } from './latency-model.ts';
import type { LimitModelSpec } from '../limit-models/limit-model-spec.ts';
import { makeLimitModel } from '../limit-models/limit-model-spec.ts';
import { type LimitAttribution, toAttribution } from './limit-attribution.ts';
import type { LimitModel } from '../limit-models/limit-model.ts';
import type { NestedLimitSpec } from './nested-limit-models.ts';
import { NestedLimitModels } from './nested-limit-models.ts';
import type { LatencyClass } from './request-latency.ts';
import { makeRequestLatency } from './request-latency.ts';
import type { MethodAndPath } from './request-match.ts';

/** An upstream as written in a configuration. Times are in ms since its start. */
export interface UpstreamSpec {
  readonly limit: LimitModelSpec;
  /** The time an accepted request takes; none when absent. */
  readonly latency?: LatencySpec;
  /** Other times for some requests: the first that matches. */
  readonly latencies?: readonly LatencyClass[];
  /** The time a rejection takes; none when absent. */
  readonly refusalLatency?: LatencySpec;
  readonly errors?: readonly ErrorBurst[];
  readonly outages?: readonly Outage[];
  /** Changes of the limit, in its unit: requests a second, in a window, or in flight. */
  readonly steps?: readonly LimitStep[];
  /** `none` when absent. */
  readonly hints?: HintStyle;
  /** The `Retry-After` of each rejection, if `hints` includes one; the exact wait when absent. */
  readonly retryAfter?: Millis;
  /** Limits of some requests, nested in `limit`. A request must pass each limit that applies to it. */
  readonly limits?: readonly NestedLimitSpec[];
  /** The reason that a rejection by `limit` itself gives. */
  readonly reason?: string;
  /** Accounts with limits of their own, which apply in place of `limit`. */
  readonly accounts?: readonly AccountSpec[];
}

/** Makes requests that the limit accepted fail at random. */
export interface ErrorBurst {
  /** In [0, 1]. */
  readonly probability: number;
  /** 503 when absent. */
  readonly status?: number;
  readonly from?: Millis;
  readonly to?: Millis;
}

/** An outage: nothing is served, and nothing counts against the limit. */
export interface Outage {
  readonly from: Millis;
  readonly to: Millis;
  /** Refuses connections, resets them once a request has arrived, or answers 503. */
  readonly how: OutageKind;
}

export type OutageKind = (typeof OUTAGE_KINDS)[number];

export const OUTAGE_KINDS = ['refuse', 'reset', '503'] as const;

export interface LimitStep {
  readonly at: Millis;
  readonly limit: number;
}

/** What the upstream does with one request. After `serve` and `fail` the caller must call `onEnd` when the work ends. */
export type UpstreamDecision =
  | ({ readonly kind: 'serve'; readonly quota: Quota | undefined } & AcceptedTimes)
  | ({ readonly kind: 'fail'; readonly quota: Quota | undefined; readonly status: number } & AcceptedTimes)
  | ({
      readonly kind: 'throttle';
      readonly latency: Millis;
      readonly quota: Quota | undefined;
      readonly retryAfterMs: Millis;
    } & LimitAttribution)
  | { readonly kind: 'down'; readonly how: OutageKind };

/** The times that an accepted request takes: at a station, of a worker and of a connection of the pool behind. */
export interface AcceptedTimes {
  readonly latency: Millis;
  readonly poolLatency?: Millis;
}

const ANY_REQUEST: MethodAndPath = { method: 'GET', path: '/' };

/** The behaviour of an upstream, without sockets. Both the practice server and the simulator use it. */
export class UpstreamModel {
  readonly #model: LimitModel;
  readonly #nested: NestedLimitModels;
  readonly #accountModelOf: ReturnType<typeof makeAccountModels>;
  readonly #reason: string | undefined;
  readonly #attributesLimit: boolean;
  readonly #hints: HintStyle;
  readonly #retryAfterMs: Millis | undefined;
  readonly #latency: ReturnType<typeof makeRequestLatency>;
  readonly #poolLatency: ((random: Random) => Millis) | undefined;
  readonly #refusalLatency: (random: Random) => Millis;
  readonly #errors: readonly ErrorBurst[];
  readonly #outages: readonly Outage[];
  readonly #steps: readonly LimitStep[];
  #nextStep = 0;

  /**
   * @param model the limit to continue with, and `nested` likewise; both are made from the spec when absent
   * @param since the time up to which steps of the limit have been applied
   * @throws RangeError when a number of the spec is out of its range
   */
  constructor(
    spec: UpstreamSpec,
    model: LimitModel = makeLimitModel(spec.limit),
    since: Millis = Number.NEGATIVE_INFINITY,
    nested: NestedLimitModels = new NestedLimitModels(spec.limits ?? []),
  ) {
    this.#model = model;
    this.#nested = nested;
    this.#accountModelOf = makeAccountModels(spec.accounts ?? []);
    this.#reason = spec.reason;
    this.#attributesLimit = spec.reason !== undefined || (spec.limits ?? []).length > 0;
    this.#hints = spec.hints ?? 'none';
    this.#retryAfterMs = spec.retryAfter;
    this.#latency = makeRequestLatency(spec.latency ?? NO_LATENCY, spec.latencies ?? []);
    const pool = spec.limit.kind === 'workers' ? spec.limit.pool : undefined;
    this.#poolLatency = pool === undefined ? undefined : makeLatencySampler(pool.latency);
    this.#refusalLatency = makeLatencySampler(spec.refusalLatency ?? NO_LATENCY);
    this.#errors = spec.errors ?? [];
    this.#outages = spec.outages ?? [];
    this.#steps = (spec.steps ?? []).filter((step) => step.at > since).toSorted((a, b) => a.at - b.at);
    for (const step of this.#steps) makeLimitModel(spec.limit).setLimit(step.limit, step.at); // throws here, not when the step is due
  }

  get model(): LimitModel {
    return this.#model;
  }

  get nested(): NestedLimitModels {
    return this.#nested;
  }

  /** The limit in force at `now`, in the unit of its kind. */
  limit(now: Millis): number {
    this.#applySteps(now);
    return this.#model.limit;
  }

  /** @param now in ms since the start of the upstream; must not decrease */
  decide(now: Millis, random: Random, request: MethodAndPath = ANY_REQUEST): UpstreamDecision {
    this.#applySteps(now);
    const outage = this.#outages.find(({ from, to }) => isWithin(now, from, to));
    if (outage !== undefined) return { kind: 'down', how: outage.how };

    const rejection = this.#nested.tryAcquire(request, now);
    const model = this.#accountModelOf(request) ?? this.#model;
    const decision = rejection === undefined ? model.tryAcquire(now, request.cost) : undefined;
    const quota = includesQuota(this.#hints) ? model.quota(now) : undefined;
    if (rejection !== undefined) {
      const { retryAfterMs, ...blame } = rejection;
      return {
        kind: 'throttle',
        latency: this.#refusalLatency(random),
        quota,
        retryAfterMs: this.#retryAfterMs ?? retryAfterMs,
        ...toAttribution(blame),
      };
    }
    if (decision?.accepted === false) {
      this.#nested.release(request, now);
      const blame = this.#attributesLimit ? toAttribution({ limit: '', reason: this.#reason }) : undefined;
      return {
        kind: 'throttle',
        latency: this.#refusalLatency(random),
        quota,
        retryAfterMs: this.#retryAfterMs ?? decision.retryAfterMs,
        ...blame,
      };
    }
    for (const { probability, status, from, to } of this.#errors) {
      if (!isWithin(now, from, to) || random() >= probability) continue;
      return { kind: 'fail', ...this.#drawTimes(request, random), quota, status: status ?? 503 };
    }
    return { kind: 'serve', ...this.#drawTimes(request, random), quota };
  }

  #drawTimes(request: MethodAndPath, random: Random): AcceptedTimes {
    const latency = this.#latency(request, random);
    return this.#poolLatency === undefined ? { latency } : { latency, poolLatency: this.#poolLatency(random) };
  }

  /** Ends a request that `decide` served or failed. */
  release(now: Millis, request: MethodAndPath = ANY_REQUEST): void {
    (this.#accountModelOf(request) ?? this.#model).release(now);
    this.#nested.release(request, now);
  }

  /** The hints of a response, in the form that `readHints` returns. `epoch` is its wall-clock time in ms since 1970. */
  hints(decision: UpstreamDecision, epochMs: Millis): Hints {
    if (decision.kind === 'down') return NO_HINTS;
    const hints = buildHints(
      this.#hints,
      decision.kind === 'throttle' ? decision.retryAfterMs : undefined,
      decision.quota,
      epochMs,
    );
    if (decision.kind !== 'throttle' || decision.reason === undefined) return hints;
    return { ...hints, reason: decision.reason, ...(decision.limit === undefined ? {} : { limit: decision.limit }) };
  }

  /** Whether connections are refused, and until when; `Infinity` if that does not change. */
  listenState(now: Millis): { readonly open: boolean; readonly until: Millis } {
    const ahead = this.#outages.filter(({ how, to }) => how === 'refuse' && to > now);
    const current = ahead.filter(({ from }) => from <= now);
    if (current.length > 0) return { open: false, until: Math.min(...current.map(({ to }) => to)) };
    return { open: true, until: Math.min(...ahead.map(({ from }) => from)) };
  }

  #applySteps(now: Millis): void {
    for (;;) {
      const step = this.#steps[this.#nextStep];
      if (step === undefined || step.at > now) return;
      this.#model.setLimit(step.limit, step.at);
      this.#nextStep += 1;
    }
  }
}

const NO_LATENCY: LatencySpec = { kind: 'constant', mean: 0 };

function isWithin(
  now: Millis,
  from: Millis = Number.NEGATIVE_INFINITY,
  to: Millis = Number.POSITIVE_INFINITY,
): boolean {
  return now >= from && now < to;
}
