import type { AccountPoolSettings } from '../core/accounts/account-pool.ts';
import type { CalendarQuotaSettings } from '../core/quota/calendar/calendar-quota.ts';
import type { ClassQuotaSettings } from '../core/quota/clients/class-quotas.ts';
import type { CostRule } from '../core/cost/cost-rule.ts';
import type { QueueSettings } from '../core/limits/longest-wait.ts';
import type { BudgetSettings } from '../core/retry/retry-token-bucket.ts';
import type { RateSettings } from '../core/rate/rate-state.ts';
import type { LimitScope } from '../core/limits/limit-state.ts';
import type { LimitRef } from '../core/limits/limit-ref.ts';
import type { RoutePolicy } from '../core/exchange/steps.ts';
import type { Millis, PerSecond, Random } from '../core/scalars.ts';
import type { UpstreamSpec } from './upstream/upstream-model.ts';

/** The name of a scenario's upstream. */
export const UPSTREAM_NAME = 'upstream';

/** What a policy is simulated against: an upstream, its clients and the network between. */
export interface Scenario {
  readonly name: string;
  readonly duration: Millis;
  /** The time before this is not counted: the start is judged by scenarios of its own. */
  readonly warmup: Millis;
  readonly upstream: UpstreamSpec;
  /** Network delay between proxy and upstream, one way. */
  readonly networkLatency: Millis;
  readonly clients: readonly ClientGroup[];
  /** The number of proxies. Each receives a part of every client's requests. */
  readonly replicas: number;
  /** Whether the replicas share limits; queues, budgets and client state stay separate. */
  readonly shared: boolean;
  /** The one-way delay to the pool that keeps the replicas' limits; undefined without a pool. */
  readonly poolLatency?: Millis | undefined;
  /** The one-way delay to the server that the replicas lease from; undefined without leases. */
  readonly leaseLatency?: Millis | undefined;
  /** When the proxies' machine sleeps: in order, without overlap. */
  readonly pauses: readonly ProxyPause[];
  readonly policy: ScenarioPolicy;
}

/** A sleep of the proxies' machine: timers, responses and requests are handled after it wakes. */
export interface ProxyPause {
  readonly from: Millis;
  readonly to: Millis;
}

/** A group of identical clients. */
export interface ClientGroup {
  readonly name: string;
  readonly count: number;
  /** Of each client. */
  readonly rate: PerSecond;
  readonly weight: number;
  /** The class whose quotas count its requests; none when absent. */
  readonly className?: string | undefined;
  readonly from: Millis;
  readonly to: Millis;
  /** Changes of the rate. */
  readonly steps: readonly { readonly at: Millis; readonly rate: PerSecond }[];
  /** Whether it honours Retry-After; requests it would have sent meanwhile are not sent. */
  readonly honoursRetryAfter: boolean;
  readonly method: string;
  readonly path: string;
  /**
   * Nested limits that apply to its requests, outermost first. The key of a limit of each client is the part after the
   * client.
   */
  readonly limits: readonly Omit<LimitRef, 'upstream'>[];
  readonly keyed: boolean;
  /** What each of its requests costs, in units, uniformly distributed; absent: 1. */
  readonly costRange?: { readonly min: number; readonly max: number } | undefined;
  /** How long each of its requests waits for a response before it is abandoned; Infinity: for ever. Absent: all wait for ever. */
  readonly patience?: ((random: Random) => Millis) | undefined;
}

/** The settings of an upstream that concern a policy. */
export interface ScenarioPolicy {
  readonly scope: LimitScope;
  readonly rate: RateSettings;
  readonly nested?: readonly NestedLimitPolicy[] | undefined;
  /** Of a single process; virtual time is the time of the epoch. None when absent. */
  readonly quotas?: readonly CalendarQuotaSettings[] | undefined;
  /** Likewise, of classes of clients and of each of their clients. */
  readonly classQuotas?: readonly ClassQuotaSettings[] | undefined;
  readonly queue: QueueSettings;
  readonly budget: BudgetSettings;
  /** Undefined if the upstream limits no accounts. */
  readonly accounts?: AccountPoolSettings | undefined;
  readonly plan: RoutePolicy;
  /** Undefined: each request costs one unit. */
  readonly cost?: ScenarioCost | undefined;
}

/** How the proxy learns what a request costs at the limit of all requests. */
export interface ScenarioCost {
  readonly rule: CostRule;
  /** The request names it. */
  readonly isDeclared: boolean;
}

/** A nested limit of the policy: of all requests, or of those named in `ClientGroup.limits`. */
export interface NestedLimitPolicy {
  readonly name: string;
  readonly scope: LimitScope;
  readonly isKeyed: boolean;
  readonly rate: RateSettings;
}

/** The demand of each client of the group in requests a second; 0 outside its time. */
export function rateAt({ rate, from, to, steps }: ClientGroup, now: Millis): PerSecond {
  if (now < from || now >= to) return 0;
  let current = rate;
  for (const step of steps) if (step.at <= now) current = step.rate;
  return current;
}

/** The mean cost of a request of the group, in units. */
export function meanCostOf({ costRange }: Pick<ClientGroup, 'costRange'>): number {
  return costRange === undefined ? 1 : (costRange.min + costRange.max) / 2;
}
