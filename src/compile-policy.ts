/** What a configuration says to the policy: the same for the proxy and for the simulator. */
import type { Plan } from './exchange.ts';
import { overrideBackOff } from './config/override.ts';
import type { BackOffConfig, Config, RetryConfig, UpstreamConfig } from './config/schema.ts';
import type { BackOffStrategy } from './policy/backoff.ts';
import { makeBackOff } from './policy/backoff.ts';
import type { Mode, RetryOn, RetryReason } from './policy/types.ts';
import type { UpstreamSettings } from './state/memory.ts';

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
export type PolicyConfig = Pick<UpstreamConfig, 'retry' | 'rateLimit' | 'queue' | 'timeout' | 'perTryTimeout'>;

export function compileUpstreams(config: Config): UpstreamSettings[] {
  return Object.entries(config.upstreams).map(([name, upstream]) => compileUpstream(name, upstream));
}

export function compileUpstream(name: string, { rateLimit, queue, retry }: PolicyConfig): UpstreamSettings {
  return {
    name,
    scope: rateLimit.scope,
    rate: {
      initialRate: rateLimit.initialRate,
      maxRate: rateLimit.maxRate ?? Number.POSITIVE_INFINITY,
      minRate: rateLimit.minRate,
      cooldown: rateLimit.cooldown,
    },
    queue,
    budget: retry.budget,
  };
}

/** @param times of the route */
export function compilePlan(
  retry: RetryConfig,
  { timeout, perTryTimeout }: Pick<PolicyConfig, 'timeout' | 'perTryTimeout'>,
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
    retry: {
      retryOn: compileRetryOn(retry.retryOn),
      attempts: retry.attempts,
      backOff: compileBackOff(retry.backOff),
      backOffFor,
      maxRetryAfter: retry.maxRetryAfter,
      unkeyedWrites: retry.unkeyedWrites,
      onClientGone: retry.onClientGone,
    },
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
