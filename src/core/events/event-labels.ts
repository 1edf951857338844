import type { KeyRefusalReason } from '../idempotency/key-record.ts';

export type ClientState = 'normal' | 'held' | 'backoff' | 'cooldown' | 'restoring';

/** How a request ended for its client: the `outcome` label of `tidegate_requests_total`. */
export type RequestOutcome =
  | 'forwarded'
  | 'recovered'
  /** The kept response to an earlier request with the same idempotency key. */
  | 'replayed'
  /** The response to an equal read that was sent at the same time. */
  | 'coalesced'
  /** A check allowed the request, and the ingress sends it. */
  | 'checked'
  /** Stored, to be delivered later. */
  | 'accepted'
  /** A CORS preflight, answered by the proxy. */
  | 'preflight'
  | 'refused'
  | 'queue_timeout'
  | 'upstream_error'
  | 'unknown'
  | 'client_gone';

/** Who set a Retry-After: the `from` label of `tidegate_retry_after_total`. */
export type RetryAfterSource = (typeof RETRY_AFTER_SOURCES)[number];
export const RETRY_AFTER_SOURCES = ['upstream', 'tidegate'] as const;

/** The `event` label of `tidegate_deliveries_total`. */
export const DELIVERY_EVENTS = ['accepted', 'duplicate', 'delivered', 'dead', 'canceled', 'unknown'] as const;
export type DeliveryEvent = (typeof DELIVERY_EVENTS)[number];

/** How a poll ended: the `outcome` label of `tidegate_polls_total`. */
export type PollOutcome = (typeof POLL_OUTCOMES)[number];
export const POLL_OUTCOMES = ['not_ready', 'ready', 'failed', 'refused', 'client_gone'] as const;

/** Why the proxy aborted a response that its client does not read: the client reads too slowly, or others need the connection. */
export const READER_ABORT_REASONS = ['slow_reader', 'gave_way'] as const;
export type ReaderAbortReason = (typeof READER_ABORT_REASONS)[number];

/** The `event` label of `tidegate_idempotency_keys_total`. */
export type IdempotencyKeyEvent = (typeof IDEMPOTENCY_KEY_EVENTS)[number];
export const IDEMPOTENCY_KEY_EVENTS = [
  'minted',
  'awaited',
  'key_in_use',
  'key_store_lost',
  'key_expired',
  'key_reused',
  'key_ambiguous',
  'key_overused',
  'replayed',
  'decided_locally',
] as const satisfies readonly (KeyRefusalReason | 'minted' | 'awaited' | 'replayed' | 'decided_locally')[];

/** Why the signature of a webhook was not accepted. */
export type SignatureFault = (typeof SIGNATURE_FAULTS)[number];
const SIGNATURE_FAULTS = ['missing', 'malformed', 'mismatch', 'too_old', 'too_new'] as const;

/** The `result` label of `tidegate_signatures_total`. */
export type SignatureLabel = (typeof SIGNATURE_LABELS)[number];
export const SIGNATURE_LABELS = ['valid', ...SIGNATURE_FAULTS] as const;

/**
 * Why an endpoint is ejected: it failed too often in a row, or at its trial; it asked for a wait that is its own (429 or 503 with
 * Retry-After); or its health checks fail.
 */
export type EjectionCause = 'failures' | 'throttled' | 'checks';

/**
 * Why it gets requests again: its trial succeeded; the endpoints in rotation fail too, so that its ejection gains nothing; or its
 * health checks succeed again.
 */
export type ReturnCause = 'trial' | 'panic' | 'checks';

/**
 * Why a request was sent to the fallback of its upstream: the upstream is blocked, has asked the client to wait, has used up a quota,
 * or has no free part of its rate or its queue in time; or none of its endpoints accepts a connection.
 */
export const FALLBACK_REASONS = [
  'blocked',
  'held',
  'quota_exceeded',
  'over_share',
  'queue_timeout',
  'queue_full',
  'connect',
] as const;
export type FallbackReason = (typeof FALLBACK_REASONS)[number];

/** Why a request was rejected because of its credential, or of its client: the `reason` label of `tidegate_auth_rejected_total`. */
export type AuthRejection = (typeof AUTH_REJECTIONS)[number];
export const AUTH_REJECTIONS = [
  'missing',
  'malformed',
  'unknown_key',
  'bad_signature',
  'wrong_algorithm',
  'expired',
  'not_yet_valid',
  'wrong_issuer',
  'wrong_audience',
  'no_name',
  'untrusted_certificate',
  'keys_unavailable',
  'not_allowed',
] as const;
