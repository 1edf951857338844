/** The texts of problem documents. `detail` is for the developer of the client: what happened, and what to do. */
import type { ErrorReason } from '../../core/exchange/attempt-outcome.ts';
import { DEFAULT_RETRY_AFTER } from '../../core/exchange/conclude-exchange.ts';
import type { ExchangeVerdict } from '../../core/exchange/exchange-verdict.ts';
import type { Millis } from '../../core/scalars.ts';
import type { ResponseDefect } from '../upstream/response-defect.ts';
import type { Problem } from './problem.ts';

export type ProblemTemplate = Omit<Problem, 'reason' | 'retryAfterMs' | 'unknown'> &
  Partial<Pick<Problem, 'retryAfterMs'>>;

export const UNKNOWN_OUTCOME = { status: 504, title: 'Outcome unknown' };

export const UNKNOWN_OUTCOME_ADVICE =
  'It may have taken effect: check before you repeat it, or repeat it with the same idempotency key.';

export const MAY_HAVE_ARRIVED_BEFORE =
  'An earlier request with this idempotency key may have reached the upstream, and its outcome is unknown.';

export const PARTLY_SENT = 'A part of this request was sent to the upstream, and its outcome is unknown.';

export const NO_RESPONSE = {
  detail: 'The request was sent to the upstream, and no response arrived.',
  proxyError: 'http_response_incomplete',
};

export const KEY_EXPIRED: Problem = {
  status: 409,
  title: 'Key expired',
  detail:
    'A write with this idempotency key was sent longer ago than the upstream remembers keys, and its outcome is unknown. Sending it again could make it take effect twice, so it was not sent. Check whether it took effect; if it did not, send it with a new key.',
  reason: 'key_expired',
  proxyError: 'http_request_denied',
  retryAfterMs: undefined,
  unknown: true,
};

/** An earlier request with the key may have been sent. */
export const KEY_STORE_LOST: Problem = {
  status: 503,
  title: 'Key store unavailable',
  detail:
    'What is known of this idempotency key cannot be read or stored, so the request was not sent. An earlier request with the key may have taken effect. Repeat it with the same key.',
  reason: 'key_store_lost',
  proxyError: 'proxy_internal_error',
  retryAfterMs: DEFAULT_RETRY_AFTER,
  unknown: true,
};

/** A problem type has one title (RFC 9457 §3.1.3). */
const QUOTA_EXCEEDED = { status: 429, type: 'quota-exceeded', title: 'Too many requests' } as const;

const REDUCED_CAPACITY = {
  status: 503,
  type: 'temporary-reduced-capacity',
  title: 'Temporarily reduced capacity',
} as const;

export const REFUSAL_PROBLEMS: Readonly<Record<Extract<ExchangeVerdict, { kind: 'refuse' }>['why'], ProblemTemplate>> =
  {
    over_share: {
      ...QUOTA_EXCEEDED,
      detail: 'The upstream is rate limited, and this client uses more than its share.',
      proxyError: 'http_request_denied',
    },
    held: {
      ...QUOTA_EXCEEDED,
      detail: 'The upstream asked this client to wait.',
      proxyError: 'http_request_denied',
    },
    quota_exceeded: {
      status: 429,
      title: 'Quota exceeded',
      detail:
        'The quota of requests to the upstream is used up, or its count is not available. Retry-After names the time to try again. Nothing was sent to the upstream.',
      proxyError: 'http_request_denied',
    },
    client_quota_exceeded: {
      ...QUOTA_EXCEEDED,
      detail:
        'This client, or its class of clients, has used up its own quota of requests. Retry-After names the time to try again. Nothing was sent to the upstream.',
      proxyError: 'http_request_denied',
    },
    queue_timeout: {
      ...QUOTA_EXCEEDED,
      detail: 'The upstream is rate limited, and the request could not be sent within its maximum queue time.',
      proxyError: 'http_request_denied',
    },
    queue_full: {
      ...REDUCED_CAPACITY,
      detail: 'The queue for the upstream is full.',
      proxyError: 'connection_limit_reached',
    },
    blocked: {
      ...REDUCED_CAPACITY,
      detail: 'The upstream is blocked: it is rejecting requests like this one, or an operator blocked it.',
      proxyError: 'destination_unavailable',
    },
    key_in_use: {
      status: 409,
      title: 'Key in use',
      detail:
        'Another request with this idempotency key is in progress, and this one was not sent. Retry with the same key to get the result.',
      proxyError: 'http_request_denied',
    },
    key_store_lost: {
      status: 503,
      title: 'Key store unavailable',
      detail:
        'What is known of this idempotency key cannot be stored, so the request was not sent. Repeat it with the same key.',
      proxyError: 'proxy_internal_error',
    },
    key_expired: {
      status: 409,
      title: 'Key expired',
      detail:
        'A write with this idempotency key was answered longer ago than the upstream remembers keys. Sending it again would make it take effect twice, so it was not sent. For another write, use a new key.',
      proxyError: 'http_request_denied',
    },
    key_reused: {
      status: 422,
      title: 'Key reused',
      detail:
        'An earlier request with this idempotency key had another query or body, and its response is kept. This one was not sent. For another write, use a new key.',
      proxyError: 'http_request_denied',
    },
    key_ambiguous: {
      status: 409,
      title: 'Key ambiguous',
      detail:
        'An earlier write used this idempotency key. Tidegate cannot tell whether this request repeats it, so it was not sent. Look up that write; for a new write, use a new key.',
      proxyError: 'http_request_denied',
    },
    key_overused: {
      status: 503,
      title: 'Too many writes with this key',
      detail:
        'Too many other clients have unfinished writes with this idempotency key, so the request was not sent. Repeat it later with the same key, or use a new key.',
      proxyError: 'http_request_denied',
    },
    draining: {
      status: 503,
      title: 'Shutting down',
      detail: 'This proxy is shutting down.',
      proxyError: 'proxy_internal_error',
    },
  };

/** Retry-After after an overload, spread so that clients do not all return at once. */
export const MIN_OVERLOAD_RETRY_AFTER: Millis = 1000;
export const OVERLOAD_RETRY_AFTER_JITTER: Millis = 3000;

export const FAILURE_PROBLEMS: Readonly<Record<ErrorReason, ProblemTemplate>> = {
  connect: {
    status: 502,
    title: 'Upstream unreachable',
    detail: 'The connection to the upstream failed. Nothing was sent.',
    proxyError: 'connection_refused',
  },
  reset: {
    status: 502,
    title: 'Connection broken',
    detail: 'The upstream closed the connection before it responded.',
    proxyError: 'connection_terminated',
  },
  timeout: {
    status: 504,
    title: 'Upstream too slow',
    detail: 'The upstream did not respond in time.',
    proxyError: 'http_response_timeout',
  },
  aborted: {
    status: 502,
    title: 'Aborted',
    detail: 'The attempt was aborted.',
    proxyError: 'proxy_internal_error',
  },
  too_many_files: {
    status: 503,
    title: 'Too many open files',
    detail: 'This proxy has reached its limit of open files. Nothing was sent to the upstream.',
    proxyError: 'http_request_denied',
    retryAfterMs: MIN_OVERLOAD_RETRY_AFTER + OVERLOAD_RETRY_AFTER_JITTER / 2,
  },
};

/** Not a 504, which leaves open whether the request was sent. */
export const CONNECTED_TOO_LATE: ProblemTemplate = {
  status: 502,
  title: 'Connected too late',
  detail: 'A connection to the upstream became available too late for a response in time. Nothing was sent.',
  proxyError: 'connection_timeout',
};

export const DEFECT_PROBLEMS: Readonly<
  Record<ResponseDefect, Pick<Problem, 'title' | 'detail' | 'reason' | 'proxyError'>>
> = {
  malformed: {
    title: 'Malformed response',
    detail: "The upstream's response is not valid HTTP/1.1.",
    reason: 'malformed_answer',
    proxyError: 'http_protocol_error',
  },
  headers_too_large: {
    title: 'Response headers too large',
    detail: "The upstream's response headers exceed 64 KiB.",
    reason: 'answer_headers_too_large',
    proxyError: 'http_response_header_section_size',
  },
  transfer_coding: {
    title: 'Unknown transfer coding',
    detail: "The upstream's response uses a transfer coding other than chunked.",
    reason: 'answer_transfer_coding',
    proxyError: 'http_response_transfer_coding',
  },
  unwritable: {
    title: 'Invalid response headers',
    detail:
      "The upstream's response headers cannot be forwarded: they are not valid HTTP, or larger than the client accepts.",
    reason: 'answer_unwritable',
    proxyError: 'http_protocol_error',
  },
};

export const OVERLOAD_PROBLEMS = {
  overloaded: {
    ...REDUCED_CAPACITY,
    detail: 'This proxy is overloaded. Nothing was sent to the upstream.',
  },
  too_many_requests: {
    ...REDUCED_CAPACITY,
    detail:
      'This proxy is handling its maximum number of concurrent requests, in total or from one address. Nothing was sent to the upstream.',
  },
  replay_memory: {
    ...REDUCED_CAPACITY,
    detail:
      'The body has to be read before the request is forwarded, and this proxy has no memory left for it. Nothing was sent to the upstream.',
  },
} as const;
