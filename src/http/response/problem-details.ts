import type { ErrorReason, Millis, Random, Verdict } from '../../core/exchange/attempt-outcome.ts';
import { explainCause } from '../upstream/connect-error-details.ts';
import type { Failure } from '../upstream/send-failure.ts';
import { ENDPOINT_REMOVED } from '../upstream/send-failure.ts';
import type { Flaw } from '../upstream/response-defect.ts';
import type { Late } from '../request/upload-timeout.ts';

/** An answer of our own (RFC 9457), and how it is told apart from the upstream's (Proxy-Status, RFC 9209). */
export interface Problem {
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  /** One of the words of Refusal, ErrorReason or the request faults: stable, for programs. */
  readonly reason: string;
  /** An error type of RFC 9209 §2.3. */
  readonly proxyError: string;
  readonly retryAfter: Millis | undefined;
  /** A write that may have taken effect. */
  readonly unknown: boolean;
  /** For the log alone: what is no business of whoever is answered. */
  readonly cause?: string;
}

type Own = Exclude<Verdict, { readonly kind: 'forward' | 'gone' }>;

/**
 * What a verdict of ours is told as.
 * @param known of the last attempt's failure, if it failed
 */
export function problemOf(verdict: Own, known: Pick<Failure, 'cause' | 'flaw'> = {}): Problem {
  const { flaw, cause } = known;
  switch (verdict.kind) {
    case 'refuse':
      return { ...REFUSALS[verdict.why], reason: verdict.why, retryAfter: verdict.retryAfter, unknown: false };
    case 'fail': {
      const { reason } = verdict;
      const told = flaw === undefined ? { ...failureOf(reason, cause), reason } : FLAWS[flaw];
      return { status: 502, retryAfter: undefined, ...told, unknown: false };
    }
    case 'unknown': {
      if (verdict.reason === 'key_expired') return KEY_EXPIRED;
      const { detail, ...told } =
        flaw === undefined ? { ...whyUnknown(verdict, cause), reason: verdict.reason } : FLAWS[flaw];
      return { ...told, ...UNKNOWN, detail: `${detail} ${ADVICE}`, retryAfter: undefined, unknown: true };
    }
  }
}

function failureOf(reason: ErrorReason, cause: string | undefined): Told {
  const told = FAILURES[reason];
  const explained = reason === 'connect' ? explainCause(cause) : undefined;
  return explained === undefined ? told : { ...told, ...explained, detail: `${explained.detail} Nothing was sent.` };
}

type Told = Omit<Problem, 'reason' | 'retryAfter' | 'unknown'> & Partial<Pick<Problem, 'retryAfter'>>;

const UNKNOWN = { status: 504, title: 'Outcome unknown' };

/** What is known of a write that may have been done. */
function whyUnknown(
  { status, attempts }: Extract<Verdict, { readonly kind: 'unknown' }>,
  cause: string | undefined,
): typeof NO_ANSWER {
  const isUnsent = attempts === 0 || cause === ENDPOINT_REMOVED;
  if (isUnsent) return { ...NO_ANSWER, detail: `${BEFORE} Nothing of this one was sent.` };
  if (status === undefined) return NO_ANSWER;
  const detail = `The upstream answered ${status} to the last attempt, which says nothing of one before that it did not answer.`;
  return { ...NO_ANSWER, detail };
}

/** A refusal of ours, of a write that others with its key may have done. */
export function unknownFor(problem: Problem): Problem {
  const { detail } = problem;
  return { ...problem, ...UNKNOWN, detail: `${detail} ${BEFORE} ${ADVICE}`, retryAfter: undefined, unknown: true };
}

const BEFORE =
  'A request with this idempotency key may have reached the upstream before, and no answer of it is known.';

const NO_ANSWER = {
  detail: 'The request reached the upstream and no answer came back.',
  proxyError: 'http_response_incomplete',
};

const KEY_EXPIRED: Problem = {
  status: 409,
  title: 'Key expired',
  detail:
    'A write with this idempotency key was sent longer ago than the upstream remembers keys, and nobody knows what came of it. Sent again it may take effect a second time, so it was not. Look whether it has taken effect; if it has not, send it with another key.',
  reason: 'key_expired',
  proxyError: 'http_request_denied',
  retryAfter: undefined,
  unknown: true,
};

const KEY_ANSWERED = {
  status: 409,
  title: 'Key expired',
  detail:
    'A write with this idempotency key was answered, longer ago than the upstream remembers keys. Sent again it would take effect a second time, so nothing of this one was sent. If another write is meant, send it with another key.',
  proxyError: 'http_request_denied',
};

const ADVICE = 'It may have taken effect: look before repeating it, or repeat it with the same idempotency key.';

const REFUSALS: Readonly<Record<Extract<Verdict, { kind: 'refuse' }>['why'], Told>> = {
  over_share: {
    status: 429,
    title: 'Too many requests',
    detail: 'The upstream is limited, and this client asks for more than its share of it.',
    proxyError: 'http_request_denied',
  },
  held: {
    status: 429,
    title: 'Too many requests',
    detail: 'The upstream asked this client to wait.',
    proxyError: 'http_request_denied',
  },
  queue_timeout: {
    status: 429,
    title: 'Too many requests',
    detail: 'The request waited for its turn as long as it may, or would have to wait longer than that.',
    proxyError: 'http_request_denied',
  },
  queue_full: {
    status: 503,
    title: 'Queue full',
    detail: 'As many requests wait for the upstream as may.',
    proxyError: 'connection_limit_reached',
  },
  blocked: {
    status: 503,
    title: 'Upstream unavailable',
    detail:
      'Requests like this one do not get through to the upstream at present, or an operator has blocked the upstream here.',
    proxyError: 'destination_unavailable',
  },
  key_in_use: {
    status: 409,
    title: 'Key in use',
    detail:
      'Another request with this idempotency key is under way, and nothing of this one was sent. Ask again with the same key for what comes of it.',
    proxyError: 'http_request_denied',
  },
  key_expired: KEY_ANSWERED,
  draining: {
    status: 503,
    title: 'Going away',
    detail: 'This proxy is being stopped.',
    proxyError: 'proxy_internal_error',
  },
};

/** How long those who met an overload are told to stay away, spread so that they do not come back at once. */
const COME_BACK: Millis = 1000;
const SPREAD: Millis = 3000;

const FAILURES: Readonly<Record<ErrorReason, Told>> = {
  connect: {
    status: 502,
    title: 'Upstream unreachable',
    detail: 'No connection to the upstream could be made. Nothing was sent.',
    proxyError: 'connection_refused',
  },
  reset: {
    status: 502,
    title: 'Connection broken',
    detail: 'The upstream broke the connection before it answered.',
    proxyError: 'connection_terminated',
  },
  timeout: {
    status: 504,
    title: 'Upstream too slow',
    detail: 'The upstream did not answer in time.',
    proxyError: 'http_response_timeout',
  },
  aborted: {
    status: 502,
    title: 'Aborted',
    detail: 'The attempt was given up.',
    proxyError: 'proxy_internal_error',
  },
  too_many_files: {
    status: 503,
    title: 'Too many files open',
    detail: 'This proxy itself has as many files open as it may. Nothing was sent to the upstream.',
    proxyError: 'http_request_denied',
    retryAfter: COME_BACK + SPREAD / 2,
  },
};

const FLAWS: Readonly<Record<Flaw, Pick<Problem, 'title' | 'detail' | 'reason' | 'proxyError'>>> = {
  malformed: {
    title: 'Malformed answer',
    detail: 'The answer of the upstream is not HTTP/1.1.',
    reason: 'malformed_answer',
    proxyError: 'http_protocol_error',
  },
  headers_too_large: {
    title: 'Answer headers too large',
    detail: 'The headers of the answer are larger than 64 KiB.',
    reason: 'answer_headers_too_large',
    proxyError: 'http_response_header_section_size',
  },
  transfer_coding: {
    title: 'Unknown transfer coding',
    detail: 'The upstream wrapped its answer in a transfer coding that it was not asked for.',
    reason: 'answer_transfer_coding',
    proxyError: 'http_response_transfer_coding',
  },
  unwritable: {
    title: 'Unwritable answer',
    detail: 'The upstream sent headers that cannot be passed on.',
    reason: 'answer_unwritable',
    proxyError: 'http_protocol_error',
  },
};

/** A request that is not taken because of what this process can take. Nothing was sent. */
export function overload(reason: keyof typeof OVERLOADS, random: Random): Problem {
  return {
    ...OVERLOADS[reason],
    status: 503,
    reason,
    proxyError: 'http_request_denied',
    retryAfter: COME_BACK + SPREAD * random(),
    unknown: false,
  };
}

const OVERLOADS = {
  overloaded: {
    title: 'Overloaded',
    detail: 'This proxy itself cannot keep up. Nothing was sent to the upstream.',
  },
  too_many_requests: {
    title: 'Too many requests at a time',
    detail: 'As many requests are under way in this proxy as may. Nothing was sent to the upstream.',
  },
  replay_memory: {
    title: 'No memory for the body',
    detail:
      'The body may have an idempotency key, and there is no memory to read it. Nothing was sent to the upstream.',
  },
} as const;

/** A request that is not forwarded because of what it is. */
export function fault(status: number, title: string, detail: string, reason: string): Problem {
  const proxyError = status === 508 ? 'proxy_loop_detected' : 'http_request_error';
  return { status, title, detail, reason, proxyError, retryAfter: undefined, unknown: false };
}

/** A body that its client does not send on. */
export const LATE: Readonly<Record<Late, Problem>> = {
  idle: fault(408, 'Request body too slow', 'The body paused for too long.', 'body_idle'),
  slow: fault(408, 'Request body too slow', 'The body came more slowly than it may.', 'body_slow'),
};

/** We go away: nobody's turn comes any more. */
export const GOING = problemOf({ kind: 'refuse', why: 'draining', retryAfter: 1000, attempts: 0, retryEnd: undefined });
