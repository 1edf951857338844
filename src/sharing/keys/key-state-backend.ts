/** Where processes that share keys store what they know of each name. */
import type { NameState } from '../../core/idempotency/name-session.ts';
import type { Millis } from '../../core/scalars.ts';

export interface WriteName {
  readonly upstream: string;
  readonly name: string;
}

/** The version of a name of which nothing is stored. */
export const NO_VERSION = '';

export interface StoredName {
  /** Changes with each change. */
  readonly version: string;
  /** Times are on the clock of this process. Undefined if nothing is known. */
  readonly state: NameState | undefined;
  /** The owners of claims whose lease on this name has ended. */
  readonly gone: ReadonlySet<string>;
  /** How often an operator has forgotten a write of this name: claims from before that count for nothing. */
  readonly forgets: number;
}

/** What is read if nothing is stored. */
export const NOTHING_STORED: StoredName = { version: NO_VERSION, state: undefined, gone: new Set(), forgets: 0 };

export interface NameChange {
  /** Stored only if this is the present version. */
  readonly expected: string;
  /** The new version, never used before. */
  readonly next: string;
  readonly state: NameState | undefined;
  readonly owners: ReadonlySet<string>;
  /** Whose share of the unresolved writes the name takes; undefined if none of its writes is unresolved. */
  readonly unresolvedOwner: number | undefined;
  /** The state is stored for at least this long from now on. */
  readonly keptFor: Millis;
  /** Replaces `keptFor` while one of its writes is unresolved or in progress, if it is longer. */
  readonly openFor?: Millis;
  /** Other processes that hold the key have to know of the change. */
  readonly isNews: boolean;
  /** An operator has forgotten a write: see `StoredName.forgets`. */
  readonly isForgotten?: boolean;
}

export type SwapResult =
  /** It is stored, and the lease of this process on the name is renewed. */
  | { readonly kind: 'stored' }
  /** Another process has changed it. Nothing was stored. */
  | { readonly kind: 'changed'; readonly found: StoredName }
  /** No response. `isUnsent`: nothing was stored; otherwise it may have been. */
  | { readonly kind: 'lost'; readonly isUnsent: boolean };

export interface RenewedLeases {
  /** The store has no claim of this process to these names: it has lost them, or others have taken them for ended. */
  readonly missing: ReadonlySet<string>;
}

/** Calls back after it has returned; `undefined`: no response. */
export interface KeyStateBackend {
  /** The claims of a process to a name count as ended, with an unknown outcome, if it has not renewed its lease on it for so long. */
  readonly leaseTime: Millis;
  /** @param awaits a request waits for the key: its release is announced */
  read(name: WriteName, awaits: boolean, onRead: (found: StoredName | undefined) => void): void;
  swap(name: WriteName, change: NameChange, onSwapped: (result: SwapResult) => void): void;
  /** Whether any write at this upstream is unresolved. */
  hasUnresolved(upstream: string, onFound: (isUnresolved: boolean | undefined) => void): void;
  /** Renews the leases of this process on these names for `leaseTime`, where it has claims. */
  renew(upstream: string, names: readonly string[], onRenewed: (renewed: RenewedLeases | undefined) => void): void;
}
