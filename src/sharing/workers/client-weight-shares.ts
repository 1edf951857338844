import type { Millis } from '../../core/scalars.ts';
import type { WorkerAccount } from './worker-account.ts';

/**
 * For each client that waits at n > 1 workers: 1/n, the part of its weight that counts at each, so that its weight is the
 * same as if all its requests waited in one place.
 */
export function divideClientWeights(
  accounts: Iterable<WorkerAccount>,
  now: Millis,
): ReadonlyMap<WorkerAccount, [string, number][]> {
  const accountsByClient = new Map<string, WorkerAccount[]>();
  for (const account of accounts) {
    for (const client of account.waitingClients(now)) {
      const others = accountsByClient.get(client);
      if (others === undefined) accountsByClient.set(client, [account]);
      else others.push(account);
    }
  }
  const shares = new Map<WorkerAccount, [string, number][]>();
  for (const [client, waitingAccounts] of accountsByClient) {
    if (waitingAccounts.length === 1) continue;
    for (const account of waitingAccounts) {
      const accountShares = shares.get(account) ?? [];
      shares.set(account, accountShares);
      accountShares.push([client, 1 / waitingAccounts.length]);
    }
  }
  return shares;
}
