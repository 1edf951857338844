import { AwaitedReturns } from '../../core/limits/awaited-returns.ts';
import type { Limit } from '../../core/limits/limit.ts';

const MAX_REPORTED_CLIENTS = 32;

/** The clients of the first 32 flows that wait at a limit. */
export function sampleWaitingClients({ queue }: Limit): readonly string[] {
  const clients: string[] = [];
  for (const { head } of queue.flows) {
    clients.push(head?.client ?? '');
    if (clients.length === MAX_REPORTED_CLIENTS) break;
  }
  return clients;
}

/**
 * From now on, the refused clients of a limit that are to return count as demand there. A limit of one client is not divided by
 * clients.
 * @param onFirst called when one counts and none did before
 */
export function countAwaitedReturns(limit: Limit, onFirst: () => void): void {
  if (limit.ref.scope !== 'client') limit.awaitedReturns = new AwaitedReturns(onFirst);
}

/**
 * The part of each client's weight that counts here: a client that waits at n members has one share, and 1/n of it at each.
 * @param memberCounts at how many members each of the clients waits, in the same order; 1 if absent
 * @returns undefined if all clients wait here alone
 */
export function localSharesOf(
  clients: readonly string[],
  memberCounts: readonly number[],
): ReadonlyMap<string, number> | undefined {
  const shares = new Map<string, number>();
  for (const [index, client] of clients.entries()) {
    const members = memberCounts[index] ?? 1;
    if (members > 1) shares.set(client, 1 / members);
  }
  return shares.size === 0 ? undefined : shares;
}
