import type { Config, RouteConfig, UpstreamConfig } from '../../config/schema/config-schema.ts';
import { formatDuration } from '../../config/values/unit-schemas.ts';
import { RETURN_GRACE } from '../../core/limits/longest-wait.ts';
import { MAX_LEARNED_RETRY_AFTER } from '../../core/limits/return-slots.ts';
import { modeOfConfig, modeOfUpstream } from '../../config/values/enforcement-mode.ts';
import type { Millis } from '../../core/scalars.ts';
import { describeAsyncWrites, describeDelivery } from './describe-delivery.ts';
import { describeEndpoints } from './describe-endpoints.ts';
import { describeMemory } from './describe-memory.ts';
import type { RouteWorstCase } from './route-worst-case.ts';
import { computeWorstCase, sum } from './route-worst-case.ts';

const MANY_ATTEMPTS = 10;

export interface WorstCases {
  /** Attempts and response times of each route, endpoints and memory; one line each. */
  readonly lines: readonly string[];
  /** Unwise settings, each with the route or part that it is about; without "warning:". */
  readonly warnings: readonly string[];
}

export function listWorstCases(config: Config): WorstCases {
  const routes = config.routes.flatMap((route) => {
    const upstream = config.upstreams[route.upstream];
    return upstream === undefined ? [] : [describeRoute(config, route, upstream)];
  });
  const observing =
    modeOfConfig(config) === 'observe'
      ? ['observe mode: every request is sent once, at once; none is queued, refused or retried']
      : [];
  const memory = describeMemory(config);
  return {
    lines: [...observing, ...mergeEqualRoutes(routes), ...describeEndpoints(config), ...memory.lines],
    warnings: [...routes.flatMap(({ warnings }) => warnings), ...memory.warnings],
  };
}

interface RouteReport extends WorstCases {
  readonly name: string;
}

/** Routes with the same worst cases are printed together: their names, then the lines once. */
function mergeEqualRoutes(routes: readonly RouteReport[]): string[] {
  const names = new Map<string, string[]>();
  for (const { name, lines } of routes) {
    const text = lines.map((line) => `  ${line}`).join('\n');
    names.set(text, [...(names.get(text) ?? []), name]);
  }
  return [...names].flatMap(([text, equal]) => [...equal, ...text.split('\n')]);
}

function describeRoute(config: Config, route: RouteConfig, upstream: UpstreamConfig): RouteReport {
  const path = `${route.methods === undefined ? '' : `${route.methods.join(',')} `}${route.host ?? ''}${route.path}`;
  const name = `${path} → ${route.upstream}`;
  // A refused client would have waited longer than maxWait. Its reserved slot is at most that much later.
  const latestReturn = upstream.queue.maxWait + 1000 / upstream.rateLimit.minRate + MAX_LEARNED_RETRY_AFTER;
  const refusal = `refusal: Retry-After of at most ${seconds(latestReturn)}, or what the upstream asks for, if that is longer`;
  if (route.check === 'only') return { name, lines: describeChecks(config, route, upstream, refusal), warnings: [] };
  const worst = computeWorstCase(config, route, upstream);
  return {
    name,
    lines: describeRequests(route, worst, refusal),
    warnings: [...listWarnings(config, worst)].map((warning) => `${name}: ${warning}`),
  };
}

function describeRequests(route: RouteConfig, worst: RouteWorstCase, refusal: string): string[] {
  if (route.deliver !== undefined) return describeDelivery(route.deliver);
  return [
    describeAttempts(worst),
    describeAnswerTime(worst),
    ...describePolls(route, worst),
    ...(worst.observes ? [] : [refusal]),
    ...describeImpatientClient(worst),
    ...(route.async === undefined ? [] : describeAsyncWrites(route.async)),
  ];
}

/** Checks send nothing, so retries and `drain.timeout` do not matter. */
function describeChecks(
  config: Config,
  route: RouteConfig,
  { queue, timeout }: UpstreamConfig,
  refusal: string,
): string[] {
  if (modeOfUpstream(config, route.upstream) === 'observe') return ['checks only: answered at once'];
  if (queue.maxWait === 0) return ['checks only: answered at once', refusal];
  const longest = Math.min(route.timeout ?? timeout, queue.maxWait + RETURN_GRACE);
  return [`checks only: answered within ${seconds(longest)}; the ingress must wait that long`, refusal];
}

function describeAttempts({ observes, attempts, retry: { budget, retryOn } }: RouteWorstCase): string {
  if (observes) return 'sends: 1 per request, at once: observe mode';
  if (attempts === 1) return 'sends: 1 per request, no retries';
  const paced = retryOn.includes(429) ? '; the learned rate paces retries after a 429 instead' : '';
  return `sends: up to ${attempts} per request; retries of errors are limited to ${percent(budget.ratio)} of the successes over time, and to ${budget.burst} without any success${paced}`;
}

function describeAnswerTime({
  attempts,
  perTry,
  queue,
  reservedWait,
  waits,
  maxRetryAfter,
  uncappedTotal,
  maxAnswerTime,
}: RouteWorstCase): string {
  const attempt = `${seconds(perTry)} attempt`;
  const each = queue > 0 ? `${seconds(queue)} queue + ${attempt}` : attempt;
  const hinted = maxRetryAfter > 0 ? ` (${times(waits.length, maxRetryAfter)} if the upstream sends Retry-After)` : '';
  const parts = [
    attempts === 1 ? each : `${attempts} × ${queue > 0 ? `(${each})` : each}`,
    ...(waits.length > 0 ? [`${seconds(sum(waits))} backoff${hinted}`] : []),
    ...(reservedWait > 0 ? [`${seconds(reservedWait)} if the client returns at its Retry-After`] : []),
  ].join(' + ');
  const begins = `response: starts at most ${seconds(maxAnswerTime)} after the end of the upload`;
  return uncappedTotal <= maxAnswerTime ? `${begins}: ${parts}` : `${begins} (timeout); without it: ${parts}`;
}

/** Each poll is a request of its own. The last poll starts before the wait ends. */
function describePolls({ poll, methods }: RouteConfig, { observes, maxAnswerTime }: RouteWorstCase): string[] {
  const isPolled = methods?.some((method) => method === 'GET' || method === 'HEAD') ?? true;
  if (poll === undefined || observes || !isPolled) return [];
  const { maxPolls, maxWait, maxWaiting } = poll;
  return [
    `polls: for Prefer: wait, up to ${maxPolls} times as many sends and a response within ${seconds(maxWait + maxAnswerTime)}; at most ${maxWaiting} such clients at a time`,
  ];
}

/** What happens to a client that gives up before the response, and settings for clients that wait less. */
function describeImpatientClient(worst: RouteWorstCase): string[] {
  const { maxAnswerTime, observes, writes, keys, attempts, perTry, retry } = worst;
  const key = observes ? 'perTryTimeout' : 'timeout';
  const perTryTimeout =
    !observes && attempts > 1 && perTry > SHORT_TIMEOUTS.perTry
      ? ` and perTryTimeout: ${formatDuration(SHORT_TIMEOUTS.perTry)}`
      : '';
  const ending = retry.onClientGone === 'finish' ? 'is completed' : 'is aborted';
  return [
    `clients: should wait ${seconds(maxAnswerTime)}; one that gives up earlier gets no response`,
    ...(writes
      ? [
          '  its write without an idempotency key may have taken effect',
          ...(keys ? [`  its write with a key ${ending}, and can be repeated with the same key`] : []),
        ]
      : []),
    ...(maxAnswerTime >= SHORT_CLIENT_TIMEOUT
      ? [
          `  for clients that wait only ${seconds(SHORT_CLIENT_TIMEOUT)}, for example, set ${key}: ${formatDuration(SHORT_TIMEOUTS.timeout)}${perTryTimeout} on the route`,
        ]
      : []),
  ];
}

/** An example of clients that wait less than the configuration allows for. */
const SHORT_CLIENT_TIMEOUT: Millis = 5000;
/** Leaves half a second for the response to reach such a client, and room for two attempts. */
const SHORT_TIMEOUTS = { timeout: 4500, perTry: 2000 } as const;

function* listWarnings(
  { drain }: Config,
  { observes, attempts, maxAnswerTime, timeout, perTry, retry }: RouteWorstCase,
): Generator<string> {
  if (attempts > MANY_ATTEMPTS) {
    yield `up to ${attempts} sends per request: the first two bring most of the benefit`;
  }
  if (attempts > 1 && retry.budget.ratio > 1) {
    yield `a budget ratio of ${retry.budget.ratio} allows more retries than successes`;
  }
  if (!observes && attempts > 1 && perTry >= timeout) {
    yield 'perTryTimeout is as long as timeout: an attempt that hangs leaves no time for another';
  }
  if (maxAnswerTime > drain.timeout) {
    yield `drain.timeout (${seconds(drain.timeout)}) is shorter than the longest request: a restart may cut it off`;
  }
}

function times(count: number, each: Millis): string {
  return count === 1 ? seconds(each) : `${count} × ${seconds(each)}`;
}

/** Whole seconds and short times exactly, others in seconds to one decimal: 24.7s instead of 24731.25ms. */
function seconds(millis: Millis): string {
  return millis < 1000 || millis % 1000 === 0
    ? formatDuration(Math.round(millis))
    : `${Number((millis / 1000).toFixed(1))}s`;
}

function percent(ratio: number): string {
  return `${Number((100 * ratio).toFixed(1))} %`;
}
