import type { Millis } from '../../core/exchange/attempt-outcome.ts';

/** Where a pool keeps what it knows of those who call about one limit. Each is one step of a store, whatever their number. */
export interface Shelf {
  /** As `PoolAccount.write` gave it; undefined where nothing is kept. */
  readAccount(holder: string): readonly number[] | undefined;
  /** Keeps it, as of one who was heard just now. */
  keepAccount(holder: string, numbers: readonly number[], now: Millis): void;
  dropAccount(holder: string): void;
  /** Some of those who were not heard since. */
  silentSince(before: Millis, most: number): readonly string[];
  /** How many accounts are kept. */
  countAccounts(): number;
  /** A client waits there. Returns with how many it does, this one included. */
  noteWaiting(client: string, holder: string, now: Millis): number;
}
