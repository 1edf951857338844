/** What a configuration says to the policy: the same for the proxy and for the simulator. */
import type { Plan } from '../../core/exchange/steps.ts';
import { listOf } from '../rules/nested-limit-rules.ts';
import { overrideBackOff } from '../schema/retry-overrides.ts';
import { POLL_BACK_OFF } from '../schema/poll-schema.ts';
import type { BackOffConfig, Config, PollConfig, RetryConfig, UpstreamConfig } from '../schema/config-schema.ts';
import type { BackOffStrategy } from '../../core/backoff/strategies.ts';
import { makeBackOff } from '../../core/backoff/strategies.ts';
import { ofClass } from '../../core/limits/limit-ref.ts';
import { makePathPattern } from '../../core/http-semantics/path-pattern.ts';
import type { RateSettings } from '../../core/rate/rate-state.ts';
import type { PollPolicy } from '../../core/polling/choose-poll.ts';
import type { Mode, RetryOn, RetryReason } from '../../core/exchange/attempt-outcome.ts';
import type { UpstreamSettings } from '../../store/memory-store.ts';
import type { NestedSettings } from '../../store/upstream-nested-limits.ts';

/** How the reasons of `backOffFor` are called in the policy. */
const REASONS: Readonly<Record<keyof RetryConfig['backOffFor'], RetryReason>> = {
  '5xx': 'status_5xx',
  '429': 'status_429',
  'connect-failure': 'connect',
  reset: 'reset',
  timeout: 'timeout',
  lock: 'lock',
};

/** What a configuration says of one upstream, as far as the policy is concerned. */
export type PolicyConfig = Pick<
  UpstreamConfig,
  'retry' | 'rateLimit' | 'limits' | 'queue' | 'timeout' | 'perTryTimeout'
>;

export function compileUpstreams(config: Config): UpstreamSettings[] {
  return Object.entries(config.upstreams).map(([name, upstream]) =>
    compileUpstream(name, upstream, config.clients.classes),
  );
}

/** @param classes of clients, by name */
export function compileUpstream(
  name: string,
  { rateLimit, limits, queue, retry }: PolicyConfig,
  classes: Config['clients']['classes'] = {},
): UpstreamSettings {
  return {
    name,
    scope: rateLimit.scope,
    rate: compileRate(rateLimit, rateLimit.scope !== 'upstream'),
    nested: [...compileClassLimits(classes), ...limits.map(compileNested)],
    queue,
    budget: retry.budget,
  };
}

function compileRate(config: RateConfig, isOfOne: boolean): RateSettings {
  const { initialRate, maxRate = Number.POSITIVE_INFINITY, minRate, cooldown, maxProbeDelay } = config;
  return { initialRate, maxRate, minRate, cooldown, maxProbeDelay, isOfOne };
}

type RateConfig = Pick<
  UpstreamConfig['rateLimit'],
  'initialRate' | 'maxRate' | 'minRate' | 'cooldown' | 'maxProbeDelay'
>;

function compileNested(limit: UpstreamConfig['limits'][number]): NestedSettings {
  const { name, scope, match, each } = limit;
  const isKeyed = each.length > 0 || listOf(match.path).some((text) => makePathPattern(text).names.length > 0);
  return { name, scope, isKeyed, rate: compileRate(limit, isKeyed || scope !== 'upstream') };
}

/** Known from the start and never to be learned. */
function compileClassLimits(classes: Config['clients']['classes']): NestedSettings[] {
  return Object.entries(classes).flatMap(([name, { maxRate }]) => {
    if (maxRate === undefined) return [];
    const rate = { initialRate: maxRate, maxRate, minRate: Math.min(maxRate, 0.1), cooldown: 0 };
    return [{ name: ofClass(name), scope: 'upstream' as const, isKeyed: false, rate }];
  });
}

/** What else there is to a route's plan. */
export interface PlanParts extends Pick<PolicyConfig, 'timeout' | 'perTryTimeout'> {
  readonly claims?: boolean;
  readonly replaysErrors?: boolean | undefined;
  readonly sharesKeys?: boolean;
}

export function compilePlan(
  retry: RetryConfig,
  { timeout, perTryTimeout, claims = false, replaysErrors, sharesKeys = false }: PlanParts,
  mode: Mode = 'enforce',
): Plan {
  const backOffFor: Partial<Record<RetryReason, BackOffStrategy>> = {};
  for (const [condition, override] of Object.entries(retry.backOffFor)) {
    if (override === undefined || !isReason(condition)) continue;
    backOffFor[REASONS[condition]] = compileBackOff(overrideBackOff(retry.backOff, override));
  }
  return {
    mode,
    timeout,
    perTryTimeout,
    claims,
    retry: {
      retryOn: compileRetryOn(retry.retryOn),
      attempts: retry.attempts,
      backOff: compileBackOff(retry.backOff),
      backOffFor,
      maxRetryAfter: retry.maxRetryAfter,
      unkeyedWrites: retry.unkeyedWrites,
      onClientGone: retry.onClientGone,
      replaysErrors,
      notProcessed: new Set(retry.notProcessed),
      sharesKeys,
      minAttemptTime: retry.minAttemptTime,
    },
  };
}

/** @param poll of the route */
export function compilePoll(poll: PollConfig | undefined): PollPolicy | undefined {
  if (poll === undefined) return undefined;
  const { notReady, backOff, maxWait, maxPolls, maxWaiting } = poll;
  return {
    notReady: new Set(notReady),
    backOff: compileBackOff(overrideBackOff(POLL_BACK_OFF, backOff)),
    maxWait,
    maxPolls,
    maxWaiting,
  };
}

function isReason(condition: string): condition is keyof typeof REASONS {
  return Object.hasOwn(REASONS, condition);
}

function compileBackOff(backOff: BackOffConfig): BackOffStrategy {
  return makeBackOff(backOff);
}

function compileRetryOn(conditions: RetryConfig['retryOn']): RetryOn {
  const statuses = new Set<number>();
  for (const condition of conditions) {
    if (typeof condition === 'number') statuses.add(condition);
    else if (condition === '5xx') for (let status = 500; status <= 599; status += 1) statuses.add(status);
    else if (condition === 'gateway-error') for (const status of [502, 503, 504]) statuses.add(status);
  }
  return {
    statuses,
    connectFailure: conditions.includes('connect-failure'),
    reset: conditions.includes('reset'),
    timeout: conditions.includes('timeout'),
    lock: conditions.includes('lock'),
  };
}
