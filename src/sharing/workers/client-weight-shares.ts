import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import type { Account } from './worker-account.ts';

/**
 * Of clients that wait with several leaseholders, the part of their weight that counts with each: together they have the
 * one share that they would have if all of it waited in one place.
 */
export function partsAmong(accounts: Iterable<Account>, now: Millis): ReadonlyMap<Account, [string, number][]> {
  const waitsWith = new Map<string, Account[]>();
  for (const account of accounts) {
    for (const client of account.clients(now)) {
      const others = waitsWith.get(client);
      if (others === undefined) waitsWith.set(client, [account]);
      else others.push(account);
    }
  }
  const parts = new Map<Account, [string, number][]>();
  for (const [client, places] of waitsWith) {
    if (places.length === 1) continue;
    for (const account of places) {
      const own = parts.get(account) ?? [];
      parts.set(account, own);
      own.push([client, 1 / places.length]);
    }
  }
  return parts;
}
