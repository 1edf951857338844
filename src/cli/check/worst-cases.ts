import { overrideBackOff, overrideRetry } from '../../config/schema/retry-overrides.ts';
import type {
  ClassConfig,
  Config,
  RetryConfig,
  RouteConfig,
  UpstreamConfig,
} from '../../config/schema/config-schema.ts';
import { writeDuration } from '../../config/values/unit-schemas.ts';
import { makeBackOff } from '../../core/backoff/strategies.ts';
import { PROMISE } from '../../core/admission/wait-estimate.ts';
import { LONGEST_PROMISE } from '../../core/limits/limit.ts';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import { isIdempotentMethod } from '../../core/exchange/attempt-outcome.ts';
import { describeEndpoints } from './describe-endpoints.ts';
import { describeMemory } from './describe-memory.ts';

/** What a client often waits at most, whatever we do. */
const USUAL_PATIENCE: Millis = 5000;
const MANY_SENDS = 10;
/** What a configuration may come to when all goes badly, in lines that are read at three in the morning. */
export function listWorstCases(config: Config): string[] {
  const routes = config.routes.flatMap((route) => {
    const upstream = config.upstreams[route.upstream];
    return upstream === undefined ? [] : describeRoute(config, route, upstream);
  });
  const observing =
    config.mode === 'observe'
      ? ['observe mode: each request is sent once, at once; nothing waits, is refused or retried, whatever is set']
      : [];
  return [...observing, ...routes, ...describeEndpoints(config), ...describeMemory(config)];
}

/** A route as one request meets it. */
interface Worst {
  readonly observes: boolean;
  /** It takes requests that a key would make safe to repeat. */
  readonly writes: boolean;
  /** A write may carry a key that the upstream recognises. */
  readonly keys: boolean;
  readonly retry: RetryConfig;
  /** Sends at most. */
  readonly attempts: number;
  readonly timeout: Millis;
  readonly perTry: Millis;
  /** In the queue, before each send. */
  readonly queue: Millis;
  /** And before the first, where the client comes back when it was told to. */
  readonly promised: Millis;
  /** The longest of each of our waits before a retry. */
  readonly waits: readonly Millis[];
  /** The longest wait instead of one of those, because the upstream asks for it; 0 where its answers are not retried. */
  readonly asked: Millis;
  /** What all parts could come to, were it not for `timeout`. */
  readonly all: Millis;
  /** The longest from the end of its upload to the head of its answer. */
  readonly hold: Millis;
}

function describeRoute(config: Config, route: RouteConfig, upstream: UpstreamConfig): string[] {
  const worst = route.check === 'only' ? undefined : reckon(config, route, upstream);
  const name = `${route.methods === undefined ? '' : `${route.methods.join(',')} `}${route.host ?? ''}${route.path}`;
  // Who is refused would have had to wait for longer than maxWait, by its own turn; its slot is that much later.
  const told = upstream.queue.maxWait + 1000 / upstream.rateLimit.minRate + LONGEST_PROMISE;
  const refusal = `refused: told to come back within ${seconds(told)}, or when the upstream asks for, if that is later`;
  const lines =
    worst === undefined ? tellChecks(config, route, upstream, refusal) : tellRequests(config, route, worst, refusal);
  return [`${name} → ${route.upstream}`, ...lines.map((line) => `  ${line}`)];
}

function tellRequests(config: Config, route: RouteConfig, worst: Worst, refusal: string): string[] {
  return [
    tellSends(worst),
    tellHold(worst),
    ...tellPolls(route, worst),
    ...(worst.observes ? [] : [refusal]),
    ...tellPatience(worst),
    ...warn(config, worst),
  ];
}

/** Nothing is sent there: who asks is told, and a drain lets those pass who wait. */
function tellChecks(
  { mode }: Config,
  route: RouteConfig,
  { queue, timeout }: UpstreamConfig,
  refusal: string,
): string[] {
  if (mode === 'observe') return ['checks alone: answered at once'];
  if (queue.maxWait === 0) return ['checks alone: answered at once', refusal];
  const longest = Math.min(route.timeout ?? timeout, queue.maxWait + PROMISE);
  return [`checks alone: answered within ${seconds(longest)}, for which whoever asks has to wait`, refusal];
}

function reckon(config: Config, route: RouteConfig, upstream: UpstreamConfig): Worst {
  const observes = config.mode === 'observe';
  const writes = route.methods?.some((method) => !isIdempotentMethod(method)) ?? true;
  const retry = overrideRetry(upstream.retry, route.retry);
  const timeout = route.timeout ?? upstream.timeout;
  const perTry = Math.min(timeout, route.perTryTimeout ?? upstream.perTryTimeout);
  const waits = observes ? [] : longestWaits(retry, Object.values(config.clients.classes));
  const attempts = waits.length + 1;
  const queue = observes ? 0 : upstream.queue.maxWait;
  const promised = observes ? 0 : PROMISE;
  const asked =
    waits.length > 0 && retry.retryOn.some(isStatus)
      ? retry.maxRetryAfter + Math.min(retry.maxRetryAfter / 10, 1000)
      : 0;
  const all = promised + attempts * (queue + perTry) + sum(waits.map((wait) => Math.max(wait, asked)));
  return {
    observes,
    writes,
    keys: upstream.idempotency.header !== false || upstream.idempotency.jsonField !== undefined,
    retry,
    attempts,
    timeout,
    perTry,
    queue,
    promised,
    waits,
    asked,
    all,
    hold: Math.min(timeout, all),
  };
}

/** Before each retry the longest delay of any backoff that some request may have, until the last of them gives up. */
function longestWaits(retry: RetryConfig, classes: readonly ClassConfig[]): Millis[] {
  const bases = [retry.backOff, ...classes.map(({ backOff }) => overrideBackOff(retry.backOff, backOff))];
  const reasons = [undefined, ...Object.values(retry.backOffFor)];
  const backOffs = bases.flatMap((base) => reasons.map((reason) => makeBackOff(overrideBackOff(base, reason))));
  const waits: Millis[] = [];
  for (let n = 0; n < retry.attempts - 1; n += 1) {
    const delays = backOffs.flatMap((backOff) => backOff.band(n)?.max ?? []);
    if (delays.length === 0) break;
    waits.push(Math.max(...delays));
  }
  return waits;
}

function tellSends({ observes, attempts, retry: { budget, retryOn } }: Worst): string {
  if (attempts === 1) return observes ? 'sends: 1 a request' : 'sends: 1 a request, no retries';
  const paced = retryOn.includes(429) ? '; retries of a 429 wait for the learned rate instead' : '';
  return `sends: up to ${attempts} a request; over time retries of errors add at most ${percent(budget.ratio)} of what succeeds, and when nothing succeeds they end after ${budget.burst}${paced}`;
}

function tellHold({ attempts, perTry, queue, promised, waits, asked, all, hold }: Worst): string {
  const parts = [
    ...(queue > 0 ? [`${times(attempts, queue)} in the queue`] : []),
    ...(promised > 0 ? [`${seconds(promised)} more for who comes back when told to`] : []),
    `${times(attempts, perTry)} at the upstream`,
    ...(waits.length > 0 ? [`${seconds(sum(waits))} between attempts`] : []),
    ...(asked > 0 ? [`or ${times(waits.length, asked)} where the upstream asks for it`] : []),
  ].join(', ');
  const begins = `answer: begins within ${seconds(hold)} of the upload's end`;
  return all <= hold ? `${begins} (${parts})` : `${begins}: timeout cuts ${parts}`;
}

/** Each poll is a request of its own; the last one begins before the wait is over. */
function tellPolls({ poll, methods }: RouteConfig, { observes, hold }: Worst): string[] {
  const isPolled = methods?.some((method) => method === 'GET' || method === 'HEAD') ?? true;
  if (poll === undefined || observes || !isPolled) return [];
  const { maxPolls, maxWait, maxWaiting } = poll;
  return [
    `polls: where a client waits (Prefer: wait), up to ${maxPolls} times as many sends, and an answer within ${seconds(maxWait + hold)}; ${maxWaiting} such clients at a time`,
  ];
}

/** What becomes of a client that gives up after five seconds. */
function tellPatience(worst: Worst): string[] {
  const { hold, observes, writes, keys, attempts, perTry, timeout, queue, promised, waits, asked, retry } = worst;
  const patience = seconds(USUAL_PATIENCE);
  if (hold < USUAL_PATIENCE) return [`a client that waits ${patience}: has an answer in time`];
  const late = Math.min(asked, timeout);
  const long = [
    perTry >= USUAL_PATIENCE ? `one attempt (${seconds(perTry)})` : undefined,
    queue + promised >= USUAL_PATIENCE ? `the queue (${seconds(queue + promised)})` : undefined,
    Math.max(0, ...waits) >= USUAL_PATIENCE ? `one backoff (${seconds(Math.max(...waits))})` : undefined,
    late >= USUAL_PATIENCE ? `a Retry-After of the upstream (${seconds(late)})` : undefined,
  ].filter((part) => part !== undefined);
  const why = long.length === 0 ? 'only all parts together outlast it' : `${long.join(', ')} may outlast it`;
  const shorter = observes
    ? `perTryTimeout: ${writeDuration(SHORTER.timeout)}`
    : `timeout: ${writeDuration(SHORTER.timeout)}${attempts > 1 && perTry > SHORTER.perTry ? ` and perTryTimeout: ${writeDuration(SHORTER.perTry)}` : ''}`;
  const finish = retry.onClientGone === 'finish' ? 'is brought to its end' : 'is broken off';
  return [
    `a client that waits ${patience}: may be gone before its answer; ${why}`,
    ...(writes
      ? [
          '  its write without an idempotency key may have happened then, and nobody knows',
          ...(keys ? [`  its write with a key ${finish}, and may be sent again with the same key`] : []),
        ]
      : []),
    `  for such clients set ${shorter} on the route`,
  ];
}

/** What is done by then has its answer back in time; two attempts fit. */
const SHORTER = { timeout: 4500, perTry: 2000 } as const;

function* warn({ drain }: Config, { observes, attempts, hold, timeout, perTry, retry }: Worst): Generator<string> {
  if (attempts > MANY_SENDS) {
    yield `warning: ${attempts} sends of one request are many: most help comes from the first two`;
  }
  if (attempts > 1 && retry.budget.ratio > 1) {
    yield `warning: a budget ratio of ${retry.budget.ratio} allows more retries than successes`;
  }
  if (!observes && attempts > 1 && perTry >= timeout) {
    yield 'warning: an attempt that hangs leaves no time for another: perTryTimeout is as long as timeout';
  }
  if (hold > drain.timeout) {
    yield `warning: drain.timeout (${seconds(drain.timeout)}) is shorter than the longest request: a restart may cut it`;
  }
}

function isStatus(condition: RetryConfig['retryOn'][number]): boolean {
  return typeof condition === 'number' || condition === '5xx' || condition === 'gateway-error';
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function times(count: number, each: Millis): string {
  return count === 1 ? seconds(each) : `${count} × ${seconds(each)}`;
}

/** In seconds to a tenth where it is no round duration: nobody reckons with 24731.25 ms. */
function seconds(millis: Millis): string {
  return millis < 1000 || millis % 1000 === 0
    ? writeDuration(Math.round(millis))
    : `${Number((millis / 1000).toFixed(1))}s`;
}

function percent(ratio: number): string {
  return `${Number((100 * ratio).toFixed(1))} %`;
}
