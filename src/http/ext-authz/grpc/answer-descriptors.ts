import { status } from '@grpc/grpc-js';
import type { Limit } from '../../../core/limits/limit.ts';
import type { Millis } from '../../../core/scalars.ts';
import { clientHeaders, selectHeaders } from './answer-check.ts';
import type { DescriptorStatus, RateLimitResponse } from './envoy-messages.ts';
import type { CallError, CheckAnswer } from './run-check.ts';

/** Statuses of the proxy that mean "later": of a limit, and of an upstream that is blocked or whose queue is full. */
const LATER: ReadonlySet<number> = new Set([429, 503]);

/** Whether the answer means that the request is over a limit. */
export function isOverLimit(answer: CheckAnswer): boolean {
  return LATER.has(answer.status);
}

/** The error of an answer that is neither yes nor no: the call itself is invalid or not allowed. Undefined if it is yes or no. */
export function errorOf(answer: CheckAnswer): CallError | undefined {
  if (answer.status === 200 || isOverLimit(answer)) return undefined;
  const code = answer.status === 400 ? status.INVALID_ARGUMENT : status.PERMISSION_DENIED;
  return { code, details: detailOf(answer.body) };
}

/**
 * The form of an answer that `ShouldRateLimit` returns. All descriptors have the same status, because they describe one request.
 * @param count of descriptors
 */
export function toRateLimitResponse(answer: CheckAnswer, count: number, now: Millis): RateLimitResponse {
  const { headers, body, limits } = answer;
  const isOver = isOverLimit(answer);
  const one = isOver ? overLimit(Number(headers.get('retry-after') ?? 0), limits, now) : withinLimit(limits, now);
  return {
    overallCode: one.code,
    statuses: Array.from({ length: count }, () => one),
    responseHeadersToAdd: isOver ? clientHeaders(headers) : selectHeaders(headers, ['tidegate-request-id']),
    requestHeadersToAdd: selectHeaders(headers, ['tidegate-permit']),
    rawBody: Buffer.from(isOver ? body : ''),
  };
}

function overLimit(retryAfterSeconds: number, limits: readonly Limit[], now: Millis): DescriptorStatus {
  return {
    code: 'OVER_LIMIT',
    limitRemaining: 0,
    durationUntilReset: { seconds: retryAfterSeconds, nanos: 0 },
    ...describeRate(limits, now),
  };
}

/** A learned limit has no window: one request remains if another could be sent now, and the reset is the time until it could. */
function withinLimit(limits: readonly Limit[], now: Millis): DescriptorStatus {
  const delays = limits.map(({ meter }) => meter.expectedDelay(now)).filter(Number.isFinite);
  const delay = Math.ceil(Math.max(0, ...delays));
  return {
    code: 'OK',
    limitRemaining: delay === 0 ? 1 : 0,
    durationUntilReset: { seconds: Math.floor(delay / 1000), nanos: (delay % 1000) * 1_000_000 },
    ...describeRate(limits, now),
  };
}

const UNITS = [
  ['SECOND', 1],
  ['MINUTE', 60],
  ['HOUR', 3600],
  ['DAY', 86_400],
] as const;

const MAX_UINT32 = 2 ** 32 - 1;

/** The lowest rate, in the smallest unit in which it is a whole number of at least 1. Absent if nothing limits the rate. */
function describeRate(limits: readonly Limit[], now: Millis): Pick<DescriptorStatus, 'currentLimit'> {
  const rate = Math.min(...limits.map(({ meter }) => meter.rate(now)));
  const unit = UNITS.find(([, seconds]) => rate * seconds >= 1);
  if (unit === undefined || !Number.isFinite(rate)) return {};
  const [name, seconds] = unit;
  return { currentLimit: { requestsPerUnit: Math.min(MAX_UINT32, Math.floor(rate * seconds)), unit: name } };
}

/** The detail of a problem document. */
function detailOf(body: string): string {
  const problem: unknown = body === '' ? {} : JSON.parse(body);
  const detail: unknown = problem instanceof Object ? Reflect.get(problem, 'detail') : undefined;
  return typeof detail === 'string' ? detail : 'The check was not decided.';
}
