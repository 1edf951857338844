import type { QueueSettings } from '../core/admission/wait-estimate.ts';
import type { BudgetSettings } from '../core/retry/retry-token-bucket.ts';
import type { RateSettings } from '../core/rate/rate-state.ts';
import type { Scope } from '../core/events/proxy-events.ts';
import type { LimitRef } from '../core/limits/limit-ref.ts';
import type { Plan } from '../core/exchange/steps.ts';
import type { Millis, PerSecond } from '../core/exchange/attempt-outcome.ts';
import type { UpstreamSpec } from './upstream/upstream-model.ts';

/** What the one upstream of a scenario is called. */
export const UPSTREAM = 'upstream';

/** A world to try a policy in: an upstream, the clients who want it, and what lies between. */
export interface Scenario {
  readonly name: string;
  readonly duration: Millis;
  /** What happens before this is not counted: a start is judged by scenarios of its own. */
  readonly warmup: Millis;
  readonly upstream: UpstreamSpec;
  /** One way between proxy and upstream. */
  readonly network: Millis;
  readonly clients: readonly ClientGroup[];
  /** Proxies, each with its share of every client's requests. */
  readonly replicas: number;
  /** Whether they share their limits; queues, budgets and what they know of clients stay their own. */
  readonly shared: boolean;
  /** They keep their limits in a pool, which is so far away, one way; undefined where they do not. */
  readonly pool?: Millis | undefined;
  /** They lease from one lender, which is so far away, one way; undefined where they do not. */
  readonly lease?: Millis | undefined;
  /** When the machine of the proxies sleeps: in order, none within another. */
  readonly pauses: readonly Pause[];
  readonly policy: PolicySettings;
}

/** The machine of the proxies sleeps: timers fire, answers are read and requests are taken when it has woken. */
export interface Pause {
  readonly from: Millis;
  readonly to: Millis;
}

/** Clients that are alike. */
export interface ClientGroup {
  readonly name: string;
  readonly count: number;
  /** Of each client. */
  readonly rate: PerSecond;
  readonly weight: number;
  readonly from: Millis;
  readonly to: Millis;
  /** The rate changes. */
  readonly steps: readonly { readonly at: Millis; readonly rate: PerSecond }[];
  /** Whether it waits when it is told to; what it would have sent meanwhile is not sent. */
  readonly honoursRetryAfter: boolean;
  readonly method: string;
  readonly path: string;
  /** Nested limits that its requests stand under, outermost first; of those of clients the key is what comes behind the client. */
  readonly limits: readonly Omit<LimitRef, 'upstream'>[];
  readonly keyed: boolean;
}

/** What a config says of an upstream, as far as a policy is concerned. */
export interface PolicySettings {
  readonly scope: Scope;
  readonly rate: RateSettings;
  readonly nested?: readonly NestedPolicy[] | undefined;
  readonly queue: QueueSettings;
  readonly budget: BudgetSettings;
  readonly plan: Plan;
}

/** A nested limit of the policy: one of all, or of those in `ClientGroup.limits`. */
export interface NestedPolicy {
  readonly name: string;
  readonly scope: Scope;
  readonly isKeyed: boolean;
  readonly rate: RateSettings;
}

/** What each client of the group wants to send a second; 0 outside its time. */
export function rateAt({ rate, from, to, steps }: ClientGroup, now: Millis): PerSecond {
  if (now < from || now >= to) return 0;
  let current = rate;
  for (const step of steps) if (step.at <= now) current = step.rate;
  return current;
}
