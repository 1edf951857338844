/** What the fields of our own log say (telemetry/log/request-log-line.ts writes them). */
import type { Answer, Attempts, End, Logged } from '../logged-request.ts';
import { answerOf, endOf, ONCE } from '../logged-request.ts';
import type { Millis } from '../../../core/exchange/attempt-outcome.ts';

type Fields = Readonly<Record<string, unknown>>;

export type Own = Pick<Logged, 'end' | 'attempts' | 'service'>;

/**
 * @param took the whole request
 * @returns `aside` for a request that was none to an upstream
 */
export function readOwn(fields: Fields, status: number, took: Millis): Own | 'aside' {
  const { outcome, reason, upstream, cause } = fields;
  const [queued, slept, count] = [
    numberOf(fields['queuedMs']),
    numberOf(fields['sleptMs']),
    numberOf(fields['attempts']),
  ];
  if (upstream === undefined) return 'aside';
  const isOurs = outcome === 'refused' || outcome === 'queue_timeout';
  // The other refusals are for what a request is (too large, malformed, its key is in use): no upstream would have had it.
  if (isOurs && status !== 429 && status !== 503) return 'aside';

  // There is a cause where the last attempt had no answer.
  const last = cause === undefined ? lastAnswer(outcome, reason, status) : 'failed';
  const end = endsAs(outcome, last);
  if (count === 0) return { end, attempts: undefined, service: undefined };
  // Of several attempts nobody knows which took how long: equally long is the best guess.
  const each = Math.max(0, took - queued - slept) / count;
  const answered = Math.max(0, numberOf(fields['polls']) - 1);
  const attempts: Attempts = {
    count,
    last,
    passed: Math.min(answered, count - 1),
    // Those of a request that failed in the end are taken to have failed so before.
    earlier: last === 'refused' || last === 'failed' ? last : 'unclear',
    firstAfter: Math.min(queued, took),
    lastAfter: count === 1 ? Math.min(queued + slept, took) : Math.max(queued, took - each),
  };
  return { end, attempts, service: count === 1 ? each : undefined };
}

/** What the upstream made of the last attempt, where there was one. */
function lastAnswer(outcome: unknown, reason: unknown, status: number): Answer {
  switch (outcome) {
    case 'forwarded':
      return answerOf(status);
    case 'recovered':
      return 'passed';
    case 'upstream_error':
      return 'failed';
    case 'unknown':
      // A write that failed, and then was turned away: by the upstream, or here.
      return typeof reason === 'string' && TURNED_AWAY.has(reason) ? 'unclear' : 'failed';
    case 'refused':
    case 'queue_timeout':
      // It would have been sent again.
      return 'unclear';
    default:
      // The client has gone: before the answer, or while it was read.
      return status === 0 ? 'unheard' : answerOf(status);
  }
}

function endsAs(outcome: unknown, last: Answer): End {
  switch (outcome) {
    case 'forwarded':
      return last === 'refused' || last === 'failed' ? endOf(last) : 'served';
    case 'recovered':
    // Let pass: whoever asked has sent it.
    case 'checked':
    case 'preflight':
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

const TURNED_AWAY: ReadonlySet<string> = new Set([
  'throttled',
  'over_share',
  'held',
  'blocked',
  'queue_timeout',
  'queue_full',
  'draining',
  'key_expired',
]);

function numberOf(value: unknown): number {
  return typeof value === 'number' && value >= 0 ? value : 0;
}

/** Of any other log: it was sent once. */
export function readForeign(status: number, took: Millis | undefined): Own {
  const answer = answerOf(status);
  return { end: endOf(answer), attempts: ONCE[answer], service: took };
}
