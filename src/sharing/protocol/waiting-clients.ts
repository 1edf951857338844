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
