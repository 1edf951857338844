import type { Law } from './choose-clients.ts';
import { chooseClients } from './choose-clients.ts';
import { ClientPopulation, Names } from './client-population.ts';

/** Load of the limit. */
export type LimitLoad = 'open' | 'paced' | 'overrun';

export const LOADS: Readonly<Record<LimitLoad, { readonly rate: number | undefined; readonly gap: number }>> = {
  /** No limit is known. */
  open: { rate: undefined, gap: 0.02 },
  /** A limit is known and used to four fifths: requests are counted and paced without waiting. */
  paced: { rate: 62_500, gap: 0.02 },
  /** Twice the limit: the queue is full, half of the requests are refused, half wait. */
  overrun: { rate: 25_000, gap: 0.02 },
};

export interface Decisions {
  readonly clients: number;
  readonly law: Law;
  readonly load: LimitLoad;
  /** CPU µs in the fastest and the slowest round. */
  readonly decision: readonly [least: number, most: number];
  /** Cost of the client name and the ticket, not included above. */
  readonly building: number;
  /** Counts over all rounds. */
  readonly counts: {
    readonly made: number;
    readonly passed: number;
    readonly refused: number;
    readonly waiting: number;
  };
  readonly tracked: number;
}

/** Measures the cost of a decision with all clients known, from arrival to admission. */
export function measureDecisions(
  law: Law,
  load: LimitLoad,
  clients: number,
  requests: number,
  rounds: number,
): Decisions {
  const crowd = new ClientPopulation(new Names(clients), { clients, ...LOADS[load] });
  for (let client = 0; client < clients; client += 1) crowd.decide(crowd.ticketOf(client));
  const choices = chooseClients(law, clients, requests);
  const decisions: number[] = [];
  const buildings: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const building = cost(choices, (client) => void crowd.ticketOf(client).weight);
    const both = cost(choices, (client) => crowd.decide(crowd.ticketOf(client)));
    decisions.push(both - building);
    buildings.push(building);
  }
  const { passed, refused, store, tracked } = crowd;
  const waiting = store.upstream('payments').queueOccupancy.size;
  return {
    clients,
    law,
    load,
    decision: [Math.min(...decisions), Math.max(...decisions)],
    building: Math.min(...buildings),
    counts: { made: clients + rounds * requests, passed, refused, waiting },
    tracked,
  };
}

/** Returns CPU µs per request, of this thread, nearly independent of other load. */
function cost(choices: Int32Array, run: (client: number) => void): number {
  const since = process.threadCpuUsage();
  for (const client of choices) run(client);
  const { user, system } = process.threadCpuUsage(since);
  return (user + system) / choices.length;
}
