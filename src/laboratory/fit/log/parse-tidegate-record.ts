/** Interprets the fields of Tidegate's own log (telemetry/log/request-log-line.ts writes them). */
import type { AttemptAnswer, LoggedAttempts, LoggedEnd, LoggedRequest } from '../logged-request.ts';
import { classifyStatus, endOfAnswer, SINGLE_ATTEMPT } from '../logged-request.ts';
import type { Millis } from '../../../core/scalars.ts';

type LogFields = Readonly<Record<string, unknown>>;

export type ParsedOutcome = Pick<LoggedRequest, 'end' | 'attempts' | 'service'>;

/**
 * @param took the time of the whole request
 * @returns `aside` for a request that was not meant for an upstream
 */
export function parseTidegateRecord(fields: LogFields, status: number, took: Millis): ParsedOutcome | 'aside' {
  const { outcome, reason, upstream, cause } = fields;
  const [queued, slept, count] = [
    numberOf(fields['queuedMs']),
    numberOf(fields['sleptMs']),
    numberOf(fields['attempts']),
  ];
  if (upstream === undefined) return 'aside';
  const isProxyRejection = outcome === 'refused' || outcome === 'queue_timeout';
  // Other rejections concern the request itself (too large, malformed, key in use): it would not have reached an upstream.
  if (isProxyRejection && status !== 429 && status !== 503) return 'aside';

  // `cause` is set if the last attempt had no response.
  const last = cause === undefined ? classifyLastAnswer(outcome, reason, status) : 'failed';
  const end = classifyEnd(outcome, last);
  if (count === 0) return { end, attempts: undefined, service: undefined };
  // The log does not split the time between attempts: equal parts are the best estimate.
  const each = Math.max(0, took - queued - slept) / count;
  const answered = Math.max(0, numberOf(fields['polls']) - 1);
  const attempts: LoggedAttempts = {
    count,
    last,
    passed: Math.min(answered, count - 1),
    // Earlier attempts of a request that failed are taken to have failed the same way.
    earlier: last === 'refused' || last === 'failed' ? last : 'unclear',
    firstAfter: Math.min(queued, took),
    lastAfter: count === 1 ? Math.min(queued + slept, took) : Math.max(queued, took - each),
  };
  return { end, attempts, service: count === 1 ? each : undefined };
}

/** How the upstream answered the last attempt, if there was one. */
function classifyLastAnswer(outcome: unknown, reason: unknown, status: number): AttemptAnswer {
  switch (outcome) {
    case 'forwarded':
      return classifyStatus(status);
    case 'recovered':
      return 'passed';
    case 'upstream_error':
      return 'failed';
    case 'unknown':
      // A write that failed and was then rejected, by the upstream or by the proxy.
      return typeof reason === 'string' && PROXY_REJECTION_REASONS.has(reason) ? 'unclear' : 'failed';
    case 'refused':
    case 'queue_timeout':
      // A refusal would have been retried.
      return 'unclear';
    default:
      // The client disconnected before or during the response.
      return status === 0 ? 'unheard' : classifyStatus(status);
  }
}

function classifyEnd(outcome: unknown, last: AttemptAnswer): LoggedEnd {
  switch (outcome) {
    case 'forwarded':
      return last === 'refused' || last === 'failed' ? endOfAnswer(last) : 'served';
    case 'recovered':
    // Allowed: the ingress that asked has sent it.
    case 'checked':
    case 'accepted':
    case 'preflight':
    case 'replayed':
    case 'coalesced':
      return 'served';
    case 'refused':
    case 'queue_timeout':
      return 'refused';
    case 'client_gone':
      return 'gone';
    default:
      return 'failed';
  }
}

const PROXY_REJECTION_REASONS: ReadonlySet<string> = new Set([
  'throttled',
  'over_share',
  'held',
  'quota_exceeded',
  'client_quota_exceeded',
  'blocked',
  'queue_timeout',
  'queue_full',
  'draining',
  'key_expired',
]);

function numberOf(value: unknown): number {
  return typeof value === 'number' && value >= 0 ? value : 0;
}

/** A request of any other log: sent once. */
export function parseGenericRecord(status: number, took: Millis | undefined): ParsedOutcome {
  const answer = classifyStatus(status);
  return { end: endOfAnswer(answer), attempts: SINGLE_ATTEMPT[answer], service: took };
}
