import type { Hints, Millis, Quota, Random } from '../../core/exchange/attempt-outcome.ts';
import { NO_HINTS } from '../../core/exchange/attempt-outcome.ts';
import type { HintStyle } from './hint-style.ts';
import { hearHints, tellsQuota } from './hint-style.ts';
import type { LatencySpec } from './latency-model.ts';
import { makeLatency } from './latency-model.ts';
import type { ModelSpec } from '../limit-models/limit-model-spec.ts';
import { makeModel } from '../limit-models/limit-model-spec.ts';
import type { LimitModel } from '../limit-models/limit-model.ts';
import type { Asked, NestedSpec } from './nested-limit-models.ts';
import { NestedLimits } from './nested-limit-models.ts';

/** An upstream as a configuration writes it. Times count from its start. */
export interface UpstreamSpec {
  readonly limit: ModelSpec;
  /** How long the work of an accepted request takes; at once when absent. */
  readonly latency?: LatencySpec;
  /** How long a refusal takes; at once when absent. */
  readonly refusalLatency?: LatencySpec;
  readonly errors?: readonly ErrorBurst[];
  readonly outages?: readonly Outage[];
  /** The limit changes: requests a second, in a window, or in flight, as the kind of limit counts. */
  readonly steps?: readonly LimitStep[];
  /** `none` when absent. */
  readonly hints?: HintStyle;
  /** Limits of some requests beneath `limit`: a request has to pass all that it stands under. */
  readonly limits?: readonly NestedSpec[];
  /** What a refusal for `limit` itself gives as its reason. */
  readonly reason?: string;
}

/** Requests that the limit has let pass fail at random. */
export interface ErrorBurst {
  /** In [0, 1]. */
  readonly probability: number;
  /** 503 when absent. */
  readonly status?: number;
  readonly from?: Millis;
  readonly to?: Millis;
}

/** Nothing is served, and nothing is charged to the limit. */
export interface Outage {
  readonly from: Millis;
  readonly to: Millis;
  /** Connections are refused, reset once a request has come, or answered 503. */
  readonly how: OutageKind;
}

export type OutageKind = (typeof OUTAGE_KINDS)[number];

export const OUTAGE_KINDS = ['refuse', 'reset', '503'] as const;

export interface LimitStep {
  readonly at: Millis;
  readonly limit: number;
}

/** What the upstream does with one request. After `serve` and `fail`, `leave` is due when the work has ended. */
export type Conduct =
  | { readonly kind: 'serve'; readonly latency: Millis; readonly quota: Quota | undefined }
  | { readonly kind: 'fail'; readonly latency: Millis; readonly quota: Quota | undefined; readonly status: number }
  | ({
      readonly kind: 'throttle';
      readonly latency: Millis;
      readonly quota: Quota | undefined;
      readonly wait: Millis;
    } & Blame)
  | { readonly kind: 'down'; readonly how: OutageKind };

/** Which limit a refusal is for; only of an upstream that gives reasons or has several. */
export interface Blame {
  /** The name of a nested one; empty for the upstream's own. */
  readonly limit?: string;
  readonly reason?: string;
}

const ANY: Asked = { method: 'GET', path: '/' };

/** An upstream's behaviour, without its sockets: the practice server and the simulator both ask it. */
export class Upstream {
  readonly #model: LimitModel;
  readonly #nested: NestedLimits;
  readonly #reason: string | undefined;
  readonly #tellsLimit: boolean;
  readonly #hints: HintStyle;
  readonly #latency: (random: Random) => Millis;
  readonly #refusalLatency: (random: Random) => Millis;
  readonly #errors: readonly ErrorBurst[];
  readonly #outages: readonly Outage[];
  readonly #steps: readonly LimitStep[];
  #nextStep = 0;

  /**
   * @param model goes on with a limit that is already in use, and so does `nested`
   * @param since steps up to then have been made
   * @throws RangeError when a number of the spec is out of its range
   */
  constructor(
    spec: UpstreamSpec,
    model: LimitModel = makeModel(spec.limit),
    since: Millis = Number.NEGATIVE_INFINITY,
    nested: NestedLimits = new NestedLimits(spec.limits ?? []),
  ) {
    this.#model = model;
    this.#nested = nested;
    this.#reason = spec.reason;
    this.#tellsLimit = spec.reason !== undefined || (spec.limits ?? []).length > 0;
    this.#hints = spec.hints ?? 'none';
    this.#latency = makeLatency(spec.latency ?? AT_ONCE);
    this.#refusalLatency = makeLatency(spec.refusalLatency ?? AT_ONCE);
    this.#errors = spec.errors ?? [];
    this.#outages = spec.outages ?? [];
    this.#steps = (spec.steps ?? []).filter((step) => step.at > since).toSorted((a, b) => a.at - b.at);
    for (const step of this.#steps) makeModel(spec.limit).retarget(step.limit, step.at); // throws now, not at the step
  }

  get model(): LimitModel {
    return this.#model;
  }

  get nested(): NestedLimits {
    return this.#nested;
  }

  /** The limit in force at `now`, in the unit of its kind: what an oracle would know. */
  limit(now: Millis): number {
    this.#step(now);
    return this.#model.limit;
  }

  /** @param now since the start of the upstream; never goes back */
  decide(now: Millis, random: Random, asked: Asked = ANY): Conduct {
    this.#step(now);
    const outage = this.#outages.find(({ from, to }) => within(now, from, to));
    if (outage !== undefined) return { kind: 'down', how: outage.how };

    const overstepped = this.#nested.arrive(asked, now);
    const admission = overstepped === undefined ? this.#model.arrive(now) : undefined;
    const quota = tellsQuota(this.#hints) ? this.#model.quota(now) : undefined;
    if (overstepped !== undefined) {
      const { wait, ...blame } = overstepped;
      return { kind: 'throttle', latency: this.#refusalLatency(random), quota, wait, ...tell(blame) };
    }
    if (admission?.accepted === false) {
      this.#nested.leave(asked, now);
      const blame = this.#tellsLimit ? tell({ limit: '', reason: this.#reason }) : undefined;
      return { kind: 'throttle', latency: this.#refusalLatency(random), quota, wait: admission.retryAfter, ...blame };
    }
    for (const { probability, status, from, to } of this.#errors) {
      if (!within(now, from, to) || random() >= probability) continue;
      return { kind: 'fail', latency: this.#latency(random), quota, status: status ?? 503 };
    }
    return { kind: 'serve', latency: this.#latency(random), quota };
  }

  /** What `decide` served or failed has ended. */
  leave(now: Millis, asked: Asked = ANY): void {
    this.#model.leave(now);
    this.#nested.leave(asked, now);
  }

  /** The hints of an answer, as a client that reads them well has them. `epoch` is the wall-clock time of the answer. */
  hints(conduct: Conduct, epoch: Millis): Hints {
    if (conduct.kind === 'down') return NO_HINTS;
    const hints = hearHints(this.#hints, conduct.kind === 'throttle' ? conduct.wait : undefined, conduct.quota, epoch);
    if (conduct.kind !== 'throttle' || conduct.reason === undefined) return hints;
    return { ...hints, reason: conduct.reason, ...(conduct.limit === undefined ? {} : { limit: conduct.limit }) };
  }

  /** Whether connections are refused, and until when that holds; `Infinity` when it stays so. */
  door(now: Millis): { readonly open: boolean; readonly until: Millis } {
    const ahead = this.#outages.filter(({ how, to }) => how === 'refuse' && to > now);
    const current = ahead.filter(({ from }) => from <= now);
    if (current.length > 0) return { open: false, until: Math.min(...current.map(({ to }) => to)) };
    return { open: true, until: Math.min(...ahead.map(({ from }) => from)) };
  }

  #step(now: Millis): void {
    for (;;) {
      const step = this.#steps[this.#nextStep];
      if (step === undefined || step.at > now) return;
      this.#model.retarget(step.limit, step.at);
      this.#nextStep += 1;
    }
  }
}

function tell({ limit, reason }: { readonly limit: string; readonly reason: string | undefined }): Blame {
  return reason === undefined ? { limit } : { limit, reason };
}

const AT_ONCE: LatencySpec = { kind: 'constant', mean: 0 };

function within(now: Millis, from: Millis = Number.NEGATIVE_INFINITY, to: Millis = Number.POSITIVE_INFINITY): boolean {
  return now >= from && now < to;
}
