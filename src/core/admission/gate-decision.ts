import type { Millis } from '../scalars.ts';

/** `enforce`: decisions are carried out. `observe`: every request is forwarded once, at once; decisions are only reported. */
export type EnforcementMode = 'enforce' | 'observe';

/** Why the gate refused a request. */
export type RefusalReason =
  /** The client asks for more than its share of a limited rate. */
  | 'over_share'
  /** The upstream asked this client to wait. */
  | 'held'
  /** A configured quota of the upstream is used up. */
  | 'quota_exceeded'
  /** The client, or its class, has used up its own quota. */
  | 'client_quota_exceeded'
  /** The upstream is blocked: it rejects everything, or an operator blocked it. */
  | 'blocked'
  /** The deadline passed in the queue. */
  | 'queue_timeout'
  /** The queue is at its bound. */
  | 'queue_full'
  /** The proxy is shutting down. */
  | 'draining';

/** The gate's decision on an arrival. */
export interface GateDecision {
  readonly decision: 'passed' | 'queued' | 'refused';
  /** Of a refusal. */
  readonly why: RefusalReason | undefined;
}

/** What becomes of a request: it is admitted or refused, at once or after it was queued. */
export type AdmissionResult =
  /** `wouldHave` is the decision that enforcing would have made; set in observe mode only. */
  | { readonly kind: 'admitted'; readonly wouldHave?: GateDecision }
  | { readonly kind: 'refused'; readonly why: RefusalReason; readonly retryAfterMs: Millis };

/** Called once for a ticket that was queued. */
export type AdmissionCallback = (admission: AdmissionResult, now: Millis) => void;

export const ADMITTED: AdmissionResult = { kind: 'admitted' };

/**
 * Why a refused client is asked to return later than its turn. `shared`: the slots of a limit, one for each refused client.
 * `own`: the slots of a flooding client, at its share of the rate. `after_own`: the next slot of a client or address that has one.
 * `yielding`: as `own`, of a client that leaves the free connections or places in flight to others, as fast as it releases its own.
 * `stalled`: no connection, or no place in flight, has become free for as long.
 */
export type ReturnSlotKind = 'shared' | 'own' | 'yielding' | 'after_own' | 'stalled';
