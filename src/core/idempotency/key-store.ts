/** Where the keys of writes are kept, and what a request asks of that place. */
import type { QueueOccupant } from '../admission/queue-occupancy.ts';
import type { ResourceBound } from '../overload/resource-bound.ts';
import type { Millis } from '../scalars.ts';
import type { OwnerDigests, WriteIdentity } from './keyed-write.ts';
import type { ClaimRefusalReason, KeptResponseMatch, KeyRecord } from './key-record.ts';
import type { WriteOutcome } from './write-outcome.ts';

/** Receives the result of a claim: one of the two is called once, unless the claim is released before. */
export interface KeyClaimListener {
  /**
   * @param record what earlier requests with this key did, as far as is known
   * @param hasWaited another request held the key
   * @param response `none` if absent
   */
  onClaimed(record: KeyRecord | undefined, hasWaited: boolean, response?: KeptResponseMatch): void;
  /** @param mayHaveTakenEffect another request may have done the write */
  onClaimRefused(why: ClaimRefusalReason, mayHaveTakenEffect: boolean): void;
}

/** A request for an idempotency key. Data only, because another process may keep the keys. */
export interface KeyClaimRequest {
  readonly identity: WriteIdentity;
  /** Counted as queued while the claim waits. */
  readonly place: QueueOccupant;
  /** What happens while another request holds the key; `pass`: several requests use it at a time. */
  readonly concurrent: 'wait' | 'refuse' | 'pass';
  /** How long the upstream remembers the key; undefined if not known. */
  readonly ttl: Millis | undefined;
  /** The only endpoint that the write can go to; undefined if there are several. */
  readonly endpoint: string | undefined;
  /** What happens if what is known of the key cannot be read or stored; `local`: this process goes on with what it knows. */
  readonly onStoreLost: 'refuse' | 'local';
  /** The key was made for this request, so no earlier one has it. */
  readonly isNew?: boolean;
}

/** What the end of an exchange says about its write, besides the outcomes of its attempts. */
export type KeyClaimEnd =
  /** The response to the write is forwarded. `isFinal`: it settles for good whether the write took effect. */
  | { readonly kind: 'answered'; readonly isFinal: boolean; readonly isDelivered: boolean }
  /** The client has gone, and an attempt may have taken effect. */
  | { readonly kind: 'unknown' }
  | { readonly kind: 'other' };

/** A change of a claim, as data. `last`: the meaning of the attempt before, if there was one. */
export type KeyClaimChange =
  | {
      readonly do: 'send';
      readonly endpoint: string;
      readonly at: Millis;
      readonly last: WriteOutcome | undefined;
    }
  | { readonly do: 'release'; readonly end: KeyClaimEnd; readonly last: WriteOutcome | undefined }
  | { readonly do: 'undelivered' };

/** A request's claim to its idempotency key, from the claim until its response has ended. */
export interface KeyClaim {
  /** Where the write was sent: the endpoint that may know its key. Defined with a single endpoint too: there may have been others. */
  readonly endpoint: string | undefined;
  /** The claim is waiting, or has the key, so `lookUp` finds the write. */
  readonly hasWrite: boolean;
  /**
   * False if another request may have got the key since the last `lookUp`, or may have sent the write so early that the upstream
   * has forgotten it: then the write may be sent only after another look-up. Read before the first byte of each attempt.
   */
  readonly isCurrent: boolean;
  /** Waits for the key until the deadline. May be called again: a key that is held is granted at once. */
  begin(listener: KeyClaimListener, deadline: Millis): void;
  /** Ends a wait for the key, with a call of `onClaimRefused`. Does nothing if the claim does not wait. */
  stopWaiting(): void;
  /** An attempt is sent to this endpoint. */
  onSend(endpoint: string): void;
  /** @param meaning of the outcome of that attempt */
  recordOutcome(meaning: WriteOutcome): void;
  /** What other requests have established about the write, or may have done by sending it; undefined if nothing. Called back once. */
  lookUp(onRecord: (record: KeyRecord | undefined) => void): void;
  /** Ends the claim with the exchange: frees the key, and stores what is known about the write. */
  release(end: KeyClaimEnd): void;
  /**
   * The response did not reach the client in full, so the client does not know the outcome. A cut may be reported twice, by
   * the upstream's connection and by the client's; it takes back one delivery.
   */
  onUndelivered(): void;
  /** The response has ended: nothing more is called. */
  close(): void;
}

/**
 * The keys of writes, of this process or of several. In this process, everything is called back at once; otherwise after a
 * round trip.
 */
export interface KeyStore {
  readonly bounds: readonly ResourceBound[];
  makeClaim(request: KeyClaimRequest): KeyClaim;
  /**
   * Whether a write is unresolved, a request in progress included.
   * @param names of the writes; undefined for any write at this upstream
   * @param by the client: of these writes, those that are certainly of others do not count. Undefined if it is not known
   */
  findUnresolved(
    upstream: string,
    names: readonly string[] | undefined,
    onFound: (isUnresolved: boolean) => void,
    by?: OwnerDigests,
  ): void;
  /** Whether any write may be unresolved, at this upstream or anywhere: a cheap test before a look-up. */
  mayHaveUnresolved(upstream?: string): boolean;
}
