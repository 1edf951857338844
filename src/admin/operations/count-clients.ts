/** Counts the clients of several processes. */
import type { ClientState } from '../../core/events/event-labels.ts';
import type { ClientsView } from '../../core/events/gate-views.ts';
import { CLIENT_STATE_RANKS } from '../../store/clients/client-search.ts';
import type { ClientStateView, ProcessView } from './process-api.ts';

export interface MergedClientsView extends ClientsView {
  /** Clients, whatever the number of upstreams and processes that know each of them; undefined if they are too many to tell. */
  readonly distinct: number | undefined;
}

/**
 * The counts are those of the rows of clients: one for each client and upstream, in the most restricted of its states. If there are
 * too many clients to list, one that several processes know is counted once for each of them.
 */
export function countClients(views: ReadonlyMap<number, ProcessView>): MergedClientsView {
  const busy = [...views.values()].filter(({ clients }) => clients.tracked > 0);
  const counts = countStates(busy) ?? sumStates(busy);
  let [lost, sum, min] = [0, 0, 1];
  for (const { clients } of busy) {
    lost += clients.tracked * (1 - clients.allowance.mean);
    sum += clients.tracked;
    min = Math.min(min, clients.allowance.min);
  }
  return { ...counts, allowance: { min, mean: sum === 0 ? 1 : 1 - lost / sum } };
}

type StateCounts = Pick<MergedClientsView, 'tracked' | 'byState' | 'distinct'>;

/** Undefined if a process does not list its clients. */
function countStates(views: readonly ProcessView[]): StateCounts | undefined {
  const rows = new Map<string, ClientStateView>();
  for (const { clientStates } of views) {
    if (clientStates === undefined) return undefined;
    for (const row of clientStates) {
      const [upstream, key, state] = row;
      const name = `${upstream}\0${key}`;
      const known = rows.get(name);
      if (known === undefined || rankOf(state) < rankOf(known[2])) rows.set(name, row);
    }
  }
  const byState = noClients();
  for (const [, , state] of rows.values()) byState[state] += 1;
  const distinct = new Set([...rows.values()].map(([, key]) => key)).size;
  return { tracked: rows.size, byState, distinct };
}

function sumStates(views: readonly ProcessView[]): StateCounts {
  const byState = noClients();
  let tracked = 0;
  for (const { clients } of views) {
    tracked += clients.tracked;
    for (const state of CLIENT_STATE_RANKS) byState[state] += clients.byState[state];
  }
  // One process counts each client once for each of its upstreams.
  const [only, ...others] = views;
  const isEachOnce = others.length === 0 && only?.upstreams.length === 1;
  return { tracked, byState, distinct: isEachOnce ? tracked : undefined };
}

function noClients(): Record<ClientState, number> {
  return { normal: 0, held: 0, backoff: 0, cooldown: 0, restoring: 0 };
}

function rankOf(state: ClientState): number {
  return CLIENT_STATE_RANKS.indexOf(state);
}
