/** The figures behind the worst cases of `tidegate check`. */
import { mergeBackOff, mergeRetry } from '../../config/schema/retry-overrides.ts';
import type {
  ClassConfig,
  Config,
  RetryConfig,
  RouteConfig,
  UpstreamConfig,
} from '../../config/schema/config-schema.ts';
import { PACED_RETURN_GRACE } from '../../core/limits/longest-wait.ts';
import { makeBackOff } from '../../core/backoff/strategies.ts';
import { jitterAboveHint } from '../../core/retry/hinted-delay.ts';
import { modeOfUpstream } from '../../config/values/enforcement-mode.ts';
import type { Millis } from '../../core/scalars.ts';
import { isIdempotentMethod } from '../../core/http-semantics/methods.ts';

/** Upper bounds for one request of a route. */
export interface RouteWorstCase {
  /** Observe mode: one send, no queue and no retries. */
  readonly observes: boolean;
  /** The route accepts methods that an idempotency key makes safe to repeat. */
  readonly writes: boolean;
  /** A write may carry an idempotency key that the upstream recognises. */
  readonly keys: boolean;
  readonly retry: RetryConfig;
  /** Maximum number of sends. */
  readonly attempts: number;
  readonly timeout: Millis;
  readonly perTry: Millis;
  /** Maximum time in the queue before each send. */
  readonly queue: Millis;
  /** Extra time before the first send for a client that returns at its Retry-After. */
  readonly reservedWait: Millis;
  /** The longest backoff before each retry. */
  readonly waits: readonly Millis[];
  /** The longest Retry-After of the upstream that replaces a backoff; 0 if no status is retried. */
  readonly maxRetryAfter: Millis;
  /** The sum of all parts, without regard to `timeout`. */
  readonly uncappedTotal: Millis;
  /** From the end of the upload to the response head. */
  readonly maxAnswerTime: Millis;
}

export function computeWorstCase(config: Config, route: RouteConfig, upstream: UpstreamConfig): RouteWorstCase {
  const observes = modeOfUpstream(config, route.upstream) === 'observe';
  const writes = route.methods?.some((method) => !isIdempotentMethod(method)) ?? true;
  const retry = mergeRetry(upstream.retry, route.retry);
  const timeout = route.timeout ?? upstream.timeout;
  const perTry = Math.min(timeout, route.perTryTimeout ?? upstream.perTryTimeout);
  const waits = observes ? [] : longestWaits(retry, Object.values(config.clients.classes));
  const attempts = waits.length + 1;
  const queue = observes ? 0 : upstream.queue.maxWait;
  const reservedWait = observes ? 0 : PACED_RETURN_GRACE;
  const maxRetryAfter =
    waits.length > 0 && retry.retryOn.some(isStatus) ? jitterAboveHint(retry.maxRetryAfter, () => 1) : 0;
  const uncappedTotal =
    reservedWait + attempts * (queue + perTry) + sum(waits.map((wait) => Math.max(wait, maxRetryAfter)));
  return {
    observes,
    writes,
    keys: upstream.idempotency.header !== false || upstream.idempotency.jsonField !== undefined,
    retry,
    attempts,
    timeout,
    perTry,
    queue,
    reservedWait,
    waits,
    maxRetryAfter,
    uncappedTotal,
    maxAnswerTime: Math.min(timeout, uncappedTotal),
  };
}

/** The longest delay before each retry over all configured backoffs, until the last of them gives up. */
function longestWaits(retry: RetryConfig, classes: readonly ClassConfig[]): Millis[] {
  const bases = [retry.backOff, ...classes.map(({ backOff }) => mergeBackOff(retry.backOff, backOff))];
  const reasons = [undefined, ...Object.values(retry.backOffFor)];
  const backOffs = bases.flatMap((base) => reasons.map((reason) => makeBackOff(mergeBackOff(base, reason))));
  const waits: Millis[] = [];
  for (let n = 0; n < retry.attempts - 1; n += 1) {
    const delays = backOffs.flatMap((backOff) => backOff.band(n)?.max ?? []);
    if (delays.length === 0) break;
    waits.push(Math.max(...delays));
  }
  return waits;
}

function isStatus(condition: RetryConfig['retryOn'][number]): boolean {
  return typeof condition === 'number' || condition === '5xx' || condition === 'gateway-error';
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
