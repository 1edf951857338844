/** Compiles the settings that the core uses: for the proxy and for the simulator. */
import { compileAccounts } from './compile-accounts.ts';
import { costUnitOf } from '../schema/limits/cost-unit.ts';
import { limitScopeOf } from '../schema/upstream-schema.ts';
import type { UpstreamSettings } from '../../store/upstream-state.ts';
import type { RoutePolicy } from '../../core/exchange/steps.ts';
import { toList } from '../values/one-or-many.ts';
import { mergeBackOff } from '../schema/retry-overrides.ts';
import { DEFAULT_POLL_BACK_OFF } from '../schema/poll-schema.ts';
import type { BackOffConfig, Config, PollConfig, RetryConfig, UpstreamConfig } from '../schema/config-schema.ts';
import type { BackOffStrategy } from '../../core/backoff/strategies.ts';
import { makeBackOff } from '../../core/backoff/strategies.ts';
import { classLimitName, clientLimitName } from '../../core/limits/limit-ref.ts';
import { makePathPattern } from '../../core/http-semantics/path-pattern.ts';
import type { PerSecond } from '../../core/scalars.ts';
import type { RateSettings } from '../../core/rate/rate-state.ts';
import type { PollPolicy } from '../../core/polling/choose-poll.ts';
import type { EnforcementMode } from '../../core/admission/gate-decision.ts';
import type { RetryOn, RetryReason } from '../../core/retry/retry-policy.ts';
import { compileClassQuotas, compileQuotas } from './compile-quotas.ts';
import type { NestedLimitSettings } from '../../store/upstream-nested-limits.ts';

/** The one mapping from the configuration's retry conditions, in `backOffFor` and in `retryOn`, to the core's retry reasons. */
const RETRY_REASON_OF_CONDITION: Readonly<Record<keyof RetryConfig['backOffFor'], RetryReason>> = {
  '5xx': 'status_5xx',
  '429': 'status_429',
  'connect-failure': 'connect',
  reset: 'reset',
  timeout: 'timeout',
  lock: 'lock',
};

/** The settings of an upstream that the core uses. */
export type PolicyConfig = Pick<
  UpstreamConfig,
  'retry' | 'rateLimit' | 'limits' | 'quotas' | 'queue' | 'timeout' | 'perTryTimeout'
> &
  Partial<Pick<UpstreamConfig, 'accounts' | 'accountQuarantine'>>;

export function compileUpstreams(config: Config): UpstreamSettings[] {
  return Object.entries(config.upstreams).map(([name, upstream]) =>
    compileUpstream(name, upstream, config.clients, (nested) => costUnitOf(config, name, nested)),
  );
}

const NO_CLASSES = { classes: {} };

/** @param clients their classes, and whether they have to prove their names @param unitOf see `costUnitOf` */
export function compileUpstream(
  name: string,
  { rateLimit, limits, quotas, queue, retry, accounts, accountQuarantine }: PolicyConfig,
  { classes, auth }: Pick<Config['clients'], 'classes' | 'auth'> = NO_CLASSES,
  unitOf: (nested: string) => string | undefined = () => undefined,
): UpstreamSettings {
  return {
    name,
    scope: limitScopeOf({ rateLimit, accounts }),
    rate: {
      // The limit of an account is one of many clients.
      ...compileRateSettings(rateLimit, accounts === undefined && rateLimit.scope !== 'upstream'),
      learnsFromLatency: rateLimit.learnFromLatency,
      unit: unitOf(''),
    },
    nested: [...compileClassLimits(classes), ...limits.map((limit) => compileNestedLimit(limit, unitOf(limit.name)))],
    quotas: compileQuotas(quotas),
    ...(Object.keys(classes).length === 0 ? {} : { classQuotas: compileClassQuotas({ classes, auth }) }),
    queue,
    budget: retry.budget,
    accounts: compileAccounts({ accounts, accountQuarantine }),
  };
}

function compileRateSettings(config: RateLimitConfig, isPerClient: boolean): RateSettings {
  const { initialRate, maxRate = Number.POSITIVE_INFINITY, minRate, cooldown, maxProbeDelay } = config;
  return { initialRate, maxRate, minRate, cooldown, maxProbeDelay, isPerClient };
}

type RateLimitConfig = Pick<
  UpstreamConfig['rateLimit'],
  'initialRate' | 'maxRate' | 'minRate' | 'cooldown' | 'maxProbeDelay'
>;

function compileNestedLimit(limit: UpstreamConfig['limits'][number], unit: string | undefined): NestedLimitSettings {
  const { name, scope, match, each } = limit;
  const isKeyed = each.length > 0 || toList(match.path).some((text) => makePathPattern(text).names.length > 0);
  return { name, scope, isKeyed, rate: { ...compileRateSettings(limit, isKeyed || scope !== 'upstream'), unit } };
}

/** The limits of `clients.classes`: fixed, never learned. */
function compileClassLimits(classes: Config['clients']['classes']): NestedLimitSettings[] {
  return Object.entries(classes).flatMap(([name, { maxRate, perClient }]) => [
    ...(maxRate === undefined ? [] : [fixedLimit(classLimitName(name), 'upstream', maxRate)]),
    ...(perClient?.maxRate === undefined ? [] : [fixedLimit(clientLimitName(name), 'client', perClient.maxRate)]),
  ]);
}

function fixedLimit(name: string, scope: NestedLimitSettings['scope'], maxRate: PerSecond): NestedLimitSettings {
  return {
    name,
    scope,
    isKeyed: false,
    rate: { initialRate: maxRate, maxRate, minRate: Math.min(maxRate, 0.1), cooldown: 0 },
  };
}

/** Settings of a route beside its retries. */
export interface PlanOptions extends Pick<PolicyConfig, 'timeout' | 'perTryTimeout'> {
  readonly claims?: boolean;
  readonly replaysErrors?: boolean | undefined;
  readonly sharesKeys?: boolean;
  readonly concurrentWrites?: boolean;
  readonly coalesces?: boolean;
}

export function compilePlan(
  retry: RetryConfig,
  {
    timeout,
    perTryTimeout,
    claims = false,
    replaysErrors,
    sharesKeys = false,
    concurrentWrites = false,
    coalesces = false,
  }: PlanOptions,
  mode: EnforcementMode = 'enforce',
): RoutePolicy {
  const backOffFor: Partial<Record<RetryReason, BackOffStrategy>> = {};
  for (const [condition, override] of Object.entries(retry.backOffFor)) {
    if (override === undefined || !isBackOffCondition(condition)) continue;
    backOffFor[RETRY_REASON_OF_CONDITION[condition]] = compileBackOff(mergeBackOff(retry.backOff, override));
  }
  return {
    mode,
    timeout,
    perTryTimeout,
    claims,
    coalesces,
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
      concurrentWrites,
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
    backOff: compileBackOff(mergeBackOff(DEFAULT_POLL_BACK_OFF, backOff)),
    maxWait,
    maxPolls,
    maxWaiting,
  };
}

function isBackOffCondition(condition: string): condition is keyof typeof RETRY_REASON_OF_CONDITION {
  return Object.hasOwn(RETRY_REASON_OF_CONDITION, condition);
}

function compileBackOff(backOff: BackOffConfig): BackOffStrategy {
  return makeBackOff(backOff);
}

function compileRetryOn(conditions: RetryConfig['retryOn']): RetryOn {
  const statuses = new Set<number>();
  const reasons = new Set<RetryReason>();
  for (const condition of conditions) {
    if (typeof condition === 'number') statuses.add(condition);
    else if (condition === '5xx') for (let status = 500; status <= 599; status += 1) statuses.add(status);
    else if (condition === 'gateway-error') for (const status of [502, 503, 504]) statuses.add(status);
    else reasons.add(RETRY_REASON_OF_CONDITION[condition]);
  }
  return {
    statuses,
    connect: reasons.has('connect'),
    reset: reasons.has('reset'),
    timeout: reasons.has('timeout'),
    lock: reasons.has('lock'),
  };
}
