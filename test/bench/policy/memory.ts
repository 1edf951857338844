import { ClientPopulation, Names, UPSTREAM } from './client-population.ts';
import { heldBytes } from './heap.ts';

export interface Memory {
  readonly clients: number;
  /** Tracked clients. */
  readonly tracked: number;
  /** Bytes per client, including its key. */
  readonly whole: number;
  /** Bytes of its key as a string. */
  readonly key: number;
  /** Growth of resident memory, in bytes. */
  readonly resident: number;
}

/** Measures the memory of clients that have sent one request each. */
export function measureMemory(clients: number): Memory {
  const names = new Names(clients);
  fill(new ClientPopulation(names, { clients: 1000, rate: undefined, gap: 0.02 }), 1000); // excludes memory of compiled code
  const before = heldBytes();
  const residentBefore = process.memoryUsage.rss();
  const crowd = new ClientPopulation(names, { clients, rate: undefined, gap: 0.02 });
  fill(crowd, clients);
  const whole = (heldBytes() - before) / clients;
  const resident = process.memoryUsage.rss() - residentBefore;
  return { clients, tracked: crowd.tracked, whole, key: measureKey(names, clients), resident };
}

function fill(crowd: ClientPopulation, clients: number): void {
  for (let client = 0; client < clients; client += 1) crowd.decide(crowd.ticketOf(client));
}

/** Measures keys as flat strings, without the array that holds them. */
function measureKey(names: Names, clients: number): number {
  const keys = Array.from<string>({ length: clients }).fill('');
  const before = heldBytes();
  for (let client = 0; client < clients; client += 1) {
    keys[client] = Buffer.from(`${UPSTREAM}\0${names.of(client)}`, 'latin1').toString('latin1');
  }
  const bytes = heldBytes() - before;
  return keys.length === clients ? bytes / clients : Number.NaN; // keeps them alive until here
}
