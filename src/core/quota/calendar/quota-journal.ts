import type { StoredCount } from './quota-counts.ts';

/** The counts of one quota that survive a restart. */
export interface StoredQuota {
  /** See `periodId`. */
  readonly period: string;
  readonly counts: readonly StoredCount[];
}

/** Keeps the counts of quotas across restarts. */
export interface QuotaJournal {
  /** Undefined if nothing is stored of this quota. */
  load(upstream: string, name: string): StoredQuota | undefined;
  /** Stores the counts before it returns. What cannot be stored is reported to the operator, and counts on in memory. */
  store(upstream: string, name: string, quota: StoredQuota): void;
  /** Calls `write`. What that stores is stored in one commit, before this returns. */
  storeTogether(write: () => void): void;
  /** Calls `write` before the journal is closed. Replaces an earlier one of this quota. */
  onClose(upstream: string, name: string, write: () => void): void;
  /** Forgets what `onClose` was given. What is stored stays. */
  forget(upstream: string, name: string): void;
}

/** As `QuotaJournal.storeTogether`; without a journal, only calls `write`. */
export function storeTogether(journal: QuotaJournal | undefined, write: () => void): void {
  if (journal === undefined) write();
  else journal.storeTogether(write);
}
