import type { KeyOwner } from '../../core/idempotency/key-owner.ts';
import type { KeyClaimRequest } from '../../core/idempotency/key-store.ts';
import type { Millis } from '../../core/scalars.ts';
import type { KeyAccountSource } from './key-account.ts';

/** How an upstream recognises a repeated write. */
export interface IdempotencySettings {
  /** The header with the key, as written and in lower case; undefined if there is none. */
  readonly header: { readonly name: string; readonly lower: string } | undefined;
  /** Path of the key in a JSON body; undefined if bodies are not searched. */
  readonly jsonField: readonly string[] | undefined;
  /** Where a request names the account that its key belongs to. */
  readonly account: readonly KeyAccountSource[];
  /** The headers of `account`, in lower case. */
  readonly accountHeaders: ReadonlySet<string>;
  /** The header that marks a stored response, in lower case; undefined if there is none. */
  readonly replayedHeader: string | undefined;
  /** Whether a key is generated for a POST or PATCH without one. Requires `header`. */
  readonly generates: boolean;
  /** Whose keys are compared: with `client`, the upstream gets a key that is derived from the client and its key. */
  readonly keyScope: 'client' | 'shared';
  /** How a request is handled while another with its key is in progress. */
  readonly concurrent: KeyClaimRequest['concurrent'];
  readonly onStoreLost: KeyClaimRequest['onStoreLost'];
  /** How long a response is kept for repeats; undefined: none is. */
  readonly keepResponsesFor: Millis | undefined;
  /** How long the upstream remembers a key; undefined if not known. */
  readonly ttlOf: ((method: string, path: string) => Millis | undefined) | undefined;
}

export interface IdempotencyKey {
  readonly value: string;
  readonly from: 'header' | 'body' | 'minted';
}

export interface WriteCredential {
  readonly kind: 'header' | 'client';
  /** The credential header, in lower case; empty if a name identifies a client that shares keys with others. */
  readonly header: string;
  readonly value: string;
  /** Its writes share a part of the memory for unresolved writes: an address, because one client can invent any number of credentials. */
  readonly owner: string;
  /**
   * What names the client if each client has keys of its own at the upstream, `NO_OWNER` for all without a name; undefined if clients
   * share keys.
   */
  readonly keyOwner: KeyOwner | undefined;
}
