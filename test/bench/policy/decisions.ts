import type { Law } from './choices.ts';
import { chooseClients } from './choices.ts';
import { Crowd, Names } from './crowd.ts';

/** What is asked of the limit. */
export type Load = 'open' | 'felt' | 'overrun';

export const LOADS: Readonly<Record<Load, { readonly rate: number | undefined; readonly gap: number }>> = {
  /** No limit is known. */
  open: { rate: undefined, gap: 0.02 },
  /** One is, and four fifths of it are asked for: all is counted and paced, nobody waits. */
  felt: { rate: 62_500, gap: 0.02 },
  /** Twice of what it lets go: the queue is full, half is refused, the other half waits. */
  overrun: { rate: 25_000, gap: 0.02 },
};

export interface Decisions {
  readonly clients: number;
  readonly law: Law;
  readonly load: Load;
  /** µs of the thread, in the fastest round and the slowest. */
  readonly decision: readonly [least: number, most: number];
  /** To name a client and to make its ticket: not in the figures above. */
  readonly building: number;
  /** In all rounds. */
  readonly counts: {
    readonly made: number;
    readonly passed: number;
    readonly refused: number;
    readonly waiting: number;
  };
  readonly tracked: number;
}

/** What a decision costs, with all its clients known: from the arrival of a request to its leave. */
export function measureDecisions(law: Law, load: Load, clients: number, requests: number, rounds: number): Decisions {
  const crowd = new Crowd(new Names(clients), { clients, ...LOADS[load] });
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
  const waiting = store.upstream('payments').backlog.size;
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

/** µs each. Of this thread, so that what else the machine does counts for little. */
function cost(choices: Int32Array, run: (client: number) => void): number {
  const since = process.threadCpuUsage();
  for (const client of choices) run(client);
  const { user, system } = process.threadCpuUsage(since);
  return (user + system) / choices.length;
}
