import type { ErrorReason } from '../../core/exchange/attempt-outcome.ts';
import type { ExchangeVerdict } from '../../core/exchange/exchange-verdict.ts';
import type { Random } from '../../core/scalars.ts';
import type { UploadTimeoutReason } from '../request/upload-timeout.ts';
import { explainConnectError } from '../upstream/connect-error-details.ts';
import type { SendFailure } from '../upstream/send-failure.ts';
import { ACCOUNT_REMOVED, ENDPOINT_REMOVED, KEY_OUTDATED, TOO_LATE } from '../upstream/send-failure.ts';
import type { Problem } from './problem.ts';
import {
  CONNECTED_TOO_LATE,
  DEFECT_PROBLEMS,
  FAILURE_PROBLEMS,
  KEY_EXPIRED,
  KEY_STORE_LOST,
  MAY_HAVE_ARRIVED_BEFORE,
  MIN_OVERLOAD_RETRY_AFTER,
  NO_RESPONSE,
  OVERLOAD_PROBLEMS,
  OVERLOAD_RETRY_AFTER_JITTER,
  PARTLY_SENT,
  REFUSAL_PROBLEMS,
  UNKNOWN_OUTCOME,
  UNKNOWN_OUTCOME_ADVICE,
  type ProblemTemplate,
} from './problem-texts.ts';

type OwnVerdict = Exclude<ExchangeVerdict, { readonly kind: 'forward' | 'gone' | 'replay' | 'share' }>;

/** @param failure of the last attempt, if it failed */
export function problemForVerdict(verdict: OwnVerdict, failure: Pick<SendFailure, 'cause' | 'defect'> = {}): Problem {
  const { defect, cause } = failure;
  switch (verdict.kind) {
    case 'refuse':
      return {
        ...REFUSAL_PROBLEMS[verdict.why],
        reason: verdict.why,
        retryAfterMs: verdict.retryAfterMs,
        unknown: false,
      };
    case 'fail': {
      const { reason } = verdict;
      const details = defect === undefined ? { ...failureDetails(reason, cause), reason } : DEFECT_PROBLEMS[defect];
      return { status: 502, retryAfterMs: undefined, ...details, unknown: false };
    }
    case 'unknown': {
      if (verdict.reason === 'key_expired') return KEY_EXPIRED;
      if (verdict.reason === 'key_store_lost') return KEY_STORE_LOST;
      const details =
        defect === undefined ? { ...unknownDetails(verdict, cause), reason: verdict.reason } : DEFECT_PROBLEMS[defect];
      const detail = `${details.detail} ${UNKNOWN_OUTCOME_ADVICE}`;
      return { ...details, ...UNKNOWN_OUTCOME, detail, retryAfterMs: undefined, unknown: true };
    }
  }
}

function failureDetails(reason: ErrorReason, cause: string | undefined): ProblemTemplate {
  if (cause === TOO_LATE || cause === KEY_OUTDATED) return CONNECTED_TOO_LATE;
  const explained = reason === 'connect' ? explainConnectError(cause) : undefined;
  return { ...FAILURE_PROBLEMS[reason], ...explained };
}

/** What is known about a write that may have taken effect. */
function unknownDetails(
  { status, attempts }: Extract<ExchangeVerdict, { readonly kind: 'unknown' }>,
  cause: string | undefined,
): typeof NO_RESPONSE {
  const isUnsent = attempts === 0 || cause === ENDPOINT_REMOVED || cause === ACCOUNT_REMOVED;
  if (isUnsent) return { ...NO_RESPONSE, detail: `${MAY_HAVE_ARRIVED_BEFORE} This one was not sent.` };
  if (status === undefined) return NO_RESPONSE;
  const detail = `The upstream responded ${status} to the last attempt, but an earlier attempt got no response.`;
  return { ...NO_RESPONSE, detail };
}

/** The problem for a rejected write that may have taken effect. @param by an earlier one has the same idempotency key */
export function asUnknownOutcome(problem: Problem, by: 'this_request' | 'earlier_request'): Problem {
  const why = by === 'this_request' ? PARTLY_SENT : MAY_HAVE_ARRIVED_BEFORE;
  return {
    ...problem,
    ...UNKNOWN_OUTCOME,
    type: undefined, // it belongs to the status and the title that are replaced
    detail: `${problem.detail} ${why} ${UNKNOWN_OUTCOME_ADVICE}`,
    retryAfterMs: undefined,
    unknown: true,
  };
}

/** The problem for a request that this process has no capacity for. Nothing was sent. */
export function overloadProblem(reason: keyof typeof OVERLOAD_PROBLEMS, random: Random): Problem {
  return {
    ...OVERLOAD_PROBLEMS[reason],
    reason,
    proxyError: 'http_request_denied',
    retryAfterMs: MIN_OVERLOAD_RETRY_AFTER + OVERLOAD_RETRY_AFTER_JITTER * random(),
    unknown: false,
  };
}

/** The problem for a request that is invalid itself. */
export function requestProblem(status: number, title: string, detail: string, reason: string): Problem {
  const proxyError = status === 508 ? 'proxy_loop_detected' : 'http_request_error';
  return { status, title, detail, reason, proxyError, retryAfterMs: undefined, unknown: false };
}

/** The problem for a request that the HTTP client refuses to write. @param detail its message */
export function invalidRequestProblem(detail: string): Problem {
  return requestProblem(400, 'Bad request', `The request cannot be forwarded: ${detail}.`, 'unsendable');
}

/** The problem for a repeated header, if it identifies the sender of the request. @param name in lower case */
export function repeatedHeaderProblem(name: string): Problem {
  const detail = `The request has more than one ${name}, so its sender is ambiguous. Send one.`;
  return requestProblem(400, 'Bad request', detail, 'bad_request');
}

export const NO_ROUTE_PROBLEM = requestProblem(
  404,
  'Not found',
  'No route matches the host, path and method of this request.',
  'no_route',
);

/** The client stopped sending the body, or sends it too slowly. */
export const UPLOAD_TIMEOUT_PROBLEMS: Readonly<Record<UploadTimeoutReason, Problem>> = {
  idle: requestProblem(
    408,
    'Request body too slow',
    'The request body paused for too long. Send it without long pauses.',
    'body_idle',
  ),
  slow: requestProblem(
    408,
    'Request body too slow',
    'The request body arrived more slowly than this proxy allows.',
    'body_slow',
  ),
};

/** The proxy shuts down before the request can be sent. */
export const DRAINING_PROBLEM = problemForVerdict({
  kind: 'refuse',
  why: 'draining',
  retryAfterMs: 1000,
  attempts: 0,
  retryOutcome: undefined,
});
