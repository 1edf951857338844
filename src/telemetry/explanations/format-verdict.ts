import type { TraceStep } from '../../core/exchange/exchange-observer.ts';
import type { ExplanationRecord } from './explanation-record.ts';
import { clockOriginOf } from './explanation-record.ts';
import { RETRY_END_TEXTS } from './format-attempt.ts';
import { formatRefusalReason, formatReturnSlot } from './format-decision.ts';
import { pluralize } from '../format-values.ts';

/** How the request ended for its client. */
export function formatVerdict(recorded: ExplanationRecord): string {
  const { record, steps = [] } = recorded;
  const { outcome, status, attempts, polls, reason, detail, wouldHave, wouldRetry } = record;
  const parts: string[] = [];
  switch (outcome) {
    case 'forwarded':
      parts.push(
        status === 0
          ? 'forwarded'
          : `forwarded: the upstream’s ${status}${polls === undefined ? '' : `, at poll ${polls}`}`,
      );
      break;
    case 'recovered':
      parts.push(`recovered: the upstream’s ${status}, at attempt ${attempts}`);
      break;
    case 'replayed':
      parts.push(`replayed: the ${status} of an earlier request with its idempotency key`);
      break;
    case 'coalesced':
      parts.push(`coalesced: the upstream’s ${status} to an equal request`);
      break;
    case 'checked':
      parts.push(`allowed to pass${reason === undefined ? '' : ` (${reason})`}: the proxy that asked sends it`);
      break;
    case 'accepted':
      parts.push('accepted: it is stored and delivered later');
      break;
    case 'preflight':
      parts.push(`a preflight, answered here with ${status}`);
      break;
    case 'refused':
    case 'queue_timeout':
      parts.push(`refused with ${status} (${reason})${detail === undefined ? '' : `: ${stripFullStop(detail)}`}`);
      break;
    case 'upstream_error':
      parts.push(
        `failed, answered with ${status} (${reason})${detail === undefined ? '' : `: ${stripFullStop(detail)}`}`,
      );
      break;
    case 'unknown':
      parts.push(
        `unknown, answered with ${status}: the write may have taken effect${detail === undefined ? '' : `. ${stripFullStop(detail)}`}`,
      );
      break;
    case 'client_gone':
      parts.push(`the client disconnected${formatGonePhase(steps)}`);
      break;
  }
  parts.push(...formatRetryEnd(record), ...formatRetryAfterText(recorded));
  if (record.isTruncated) {
    parts.push(`the body was truncated${record.cause === undefined ? '' : ` (${record.cause})`}`);
  }
  if (wouldHave !== undefined && wouldHave.decision !== 'passed') {
    parts.push(
      `observe mode: it would have been ${wouldHave.decision}${wouldHave.why === undefined ? '' : ` (${wouldHave.why})`}`,
    );
  }
  if (wouldRetry !== undefined) parts.push(`observe mode: it would have been retried (${wouldRetry})`);
  return parts.join('; ');
}

function formatRetryEnd({ retryOutcome, attempts, outcome }: ExplanationRecord['record']): string[] {
  if (retryOutcome === undefined || retryOutcome === 'success' || outcome === 'client_gone') return [];
  const after = attempts > 1 ? ` after ${pluralize(attempts, 'attempt', 'attempts')}` : '';
  return [`not retried${after}: ${RETRY_END_TEXTS[retryOutcome]}`];
}

function formatRetryAfterText(recorded: ExplanationRecord): string[] {
  const { record, steps = [] } = recorded;
  const { retryAfterSeconds, retryAfterFrom } = record;
  if (retryAfterFrom === 'upstream') {
    return [
      `Retry-After of the upstream: ${retryAfterSeconds === undefined ? 'unreadable' : `${retryAfterSeconds} s`}`,
    ];
  }
  if (retryAfterSeconds === undefined) return [];
  if (record.outcome === 'forwarded') {
    return [`Retry-After of Tidegate: ${retryAfterSeconds} s, because the upstream sent none`];
  }
  const decided = steps.findLast(
    (step) => (step.what === 'decided' || step.what === 'dequeued') && step.why !== undefined,
  );
  if ((decided?.what !== 'decided' && decided?.what !== 'dequeued') || decided.details === undefined) {
    return [`Retry-After: ${retryAfterSeconds} s`];
  }
  const { why, retryAfterMs, details } = decided;
  const because = formatRefusalReason(why, details, clockOriginOf(recorded));
  const slot = retryAfterMs === undefined ? undefined : formatReturnSlot(retryAfterMs, details);
  return [
    `Retry-After: ${retryAfterSeconds} s${because === undefined ? '' : `, because ${because}`}`,
    ...(slot === undefined ? [] : [`this is ${slot}`]),
  ];
}

const CLIENT_GONE_TEXTS = {
  body: 'the body was read',
  claim: 'the request waited for another one with its idempotency key',
  join: 'the request waited for an equal one',
  queue: 'the request was queued',
  attempt: 'an attempt was in flight',
  wait: 'the request waited for a retry',
} as const;

function formatGonePhase(steps: readonly TraceStep[]): string {
  const goneStep = steps.findLast((step) => step.what === 'gone');
  return goneStep?.what === 'gone' ? ` while ${CLIENT_GONE_TEXTS[goneStep.during]}` : '';
}

/** The text without its final full stop. */
function stripFullStop(detail: string): string {
  return detail.replace(/\.$/, '');
}

/** If its body could not be read to the end, the client is still connected: it got a response about that. */
export function formatClientGone({ record }: ExplanationRecord): string {
  return record.outcome === 'client_gone' ? 'the client disconnected' : 'the request was aborted';
}
