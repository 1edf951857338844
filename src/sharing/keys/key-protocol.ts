/** The messages between a worker and its primary, which keeps the keys of writes. */
import type { KeyClaimEnd, KeyClaimRequest } from '../../core/idempotency/key-store.ts';
import type { ClaimRefusalReason, KnownWrite } from '../../core/idempotency/key-record.ts';
import type { OwnerDigests } from '../../core/idempotency/keyed-write.ts';
import type { OpenWrite } from '../../core/idempotency/open-writes.ts';
import type { WriteOutcome } from '../../core/idempotency/write-outcome.ts';
import type { Millis } from '../../core/scalars.ts';
import type { ResponseOperation, ResponseReply } from './response-protocol.ts';

/** Operations on claims, which a worker numbers: see `KeyClaim`. */
export type KeyOperation =
  | { readonly do: 'claim'; readonly claim: number; readonly request: KeyClaimRequest; readonly deadline: Millis }
  | { readonly do: 'stop'; readonly claim: number }
  /** `last`: the meaning of the attempt before, if there was one. */
  | (KeyOutcome & { readonly do: 'send'; readonly claim: number; readonly endpoint: string; readonly at: Millis })
  | (KeyOutcome & { readonly do: 'look'; readonly claim: number })
  | (KeyOutcome & { readonly do: 'release'; readonly claim: number; readonly end: KeyClaimEnd })
  | { readonly do: 'undelivered'; readonly claim: number }
  /** No more operations on this claim follow. */
  | { readonly do: 'close'; readonly claim: number }
  /** See `OpenWriteLog`. */
  | { readonly do: 'sent-unkeyed'; readonly write: OpenWrite }
  | { readonly do: 'end-unkeyed'; readonly requestId: string }
  | { readonly do: 'response'; readonly operation: ResponseOperation }
  /** A look-up without a claim: see `KeyStore.findUnresolved`. */
  | {
      readonly do: 'find';
      readonly query: number;
      readonly upstream: string;
      readonly names: readonly string[] | undefined;
      readonly by?: OwnerDigests | undefined;
    };

interface KeyOutcome {
  readonly last: WriteOutcome | undefined;
}

export type KeyReply =
  | (KnownWrite & { readonly type: 'claimed'; readonly claim: number; readonly hasWaited: boolean })
  | {
      readonly type: 'refused';
      readonly claim: number;
      readonly why: ClaimRefusalReason;
      readonly mayHaveTakenEffect: boolean;
    }
  /** The result of a `look`. `isLost`: the store did not respond, so this is what has to be assumed. */
  | (KnownWrite & { readonly type: 'known'; readonly claim: number; readonly isLost?: boolean })
  /** Another request has changed what is known of a write. */
  | (KnownWrite & { readonly type: 'changed'; readonly claim: number })
  /** Other processes may have presumed the claim ended, and sent the write. */
  | { readonly type: 'lapsed'; readonly claim: number }
  | { readonly type: 'found'; readonly query: number; readonly isUnresolved: boolean }
  | { readonly type: 'response'; readonly reply: ResponseReply };
