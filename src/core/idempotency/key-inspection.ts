/** What an operator sees of the keys of writes, and may change. Values only: another process may keep the keys. */
import type { Millis } from '../scalars.ts';

/**
 * `in_progress`: a request has the key or waits for it, or a response to the write is being sent. `unresolved`: the write may have
 * taken effect, and no response confirms it; for some credentials at least. `answered`: a response confirms it.
 */
export type WriteState = (typeof WRITE_STATES)[number];
export const WRITE_STATES = ['in_progress', 'unresolved', 'answered'] as const;

/** A write, without its key and its credentials. */
export interface WriteView {
  /** See write-id.ts. */
  readonly id: string;
  readonly upstream: string;
  readonly state: WriteState;
  /** Undefined if it was not sent so far. */
  readonly firstSentAt: Millis | undefined;
  /** Undefined if it is not known. */
  readonly endpoint: string | undefined;
  /** Requests in progress, those that wait for the key included. */
  readonly requests: number;
  /** Responses that are being sent to clients. */
  readonly responses: number;
  /** Credentials that received a final response. */
  readonly finalFor: number;
}

export interface WriteQuery {
  readonly upstream?: string | undefined;
  /** All unless given. */
  readonly states?: readonly WriteState[] | undefined;
  /** An id, or at least eight first digits of one. */
  readonly id?: string | undefined;
  /** The key in clear. */
  readonly key?: string | undefined;
  /** By the time of the first send; a write that was not sent is the newest. */
  readonly order: 'newest' | 'oldest';
  readonly limit: number;
}

export interface WriteMatches {
  /** All writes that are known; undefined if they were not all counted. */
  readonly total: number | undefined;
  readonly matching: number;
  readonly writes: readonly WriteView[];
  /** There are more than one search reads: writes that match may be missing. */
  readonly isTruncated: boolean;
}

/** The store of the keys cannot answer now. `why` is a sentence or two. */
export interface KeysUnavailable {
  readonly kind: 'unavailable';
  readonly why: string;
}

export type WriteLookup =
  | { readonly kind: 'found'; readonly write: WriteView }
  | { readonly kind: 'unknown' }
  /** Several writes have this id. */
  | { readonly kind: 'ambiguous'; readonly ids: readonly string[] };

export type WriteRemoval =
  | { readonly kind: 'forgotten'; readonly write: WriteView }
  /** Requests rely on what is known of it. */
  | { readonly kind: 'in_progress'; readonly write: WriteView }
  /** It is forgotten here, but the next process will know it unless it can be stored before. */
  | { readonly kind: 'not_stored'; readonly write: WriteView }
  /** The store did not confirm it: it may be forgotten, or may still be. `write` is undefined if it is unknown. */
  | { readonly kind: 'unconfirmed'; readonly write: WriteView | undefined }
  | Exclude<WriteLookup, { readonly kind: 'found' }>;

/** The keys for an operator, wherever they are kept. */
export interface KeyInspection {
  /** The origin of times, in milliseconds since 1970; absent: they are on the clock of this process. */
  readonly timeOrigin?: Millis;
  list(query: WriteQuery): Promise<WriteMatches | KeysUnavailable>;
  /** @param id or at least eight first digits of it */
  find(id: string): Promise<WriteLookup | KeysUnavailable>;
  /** Forgets a write, in the store too, so that a repeat of it counts as new. */
  forget(id: string): Promise<WriteRemoval | KeysUnavailable>;
}
