import { Crowd, Names, UPSTREAM } from './crowd.ts';
import { heldBytes } from './heap.ts';

export interface Memory {
  readonly clients: number;
  /** Clients that are remembered. */
  readonly tracked: number;
  /** Bytes for each, its key included. */
  readonly whole: number;
  /** Bytes that its key takes as a string, alone. */
  readonly key: number;
  /** What the process takes more than before, in bytes. */
  readonly resident: number;
}

/** What a million clients take who have sent one request each. */
export function measureMemory(clients: number): Memory {
  const names = new Names(clients);
  fill(new Crowd(names, { clients: 1000, rate: undefined, gap: 0.02 }), 1000); // what is compiled is none of theirs
  const before = heldBytes();
  const residentBefore = process.memoryUsage.rss();
  const crowd = new Crowd(names, { clients, rate: undefined, gap: 0.02 });
  fill(crowd, clients);
  const whole = (heldBytes() - before) / clients;
  const resident = process.memoryUsage.rss() - residentBefore;
  return { clients, tracked: crowd.tracked, whole, key: measureKey(names, clients), resident };
}

function fill(crowd: Crowd, clients: number): void {
  for (let client = 0; client < clients; client += 1) crowd.decide(crowd.ticketOf(client));
}

/** Each key as one flat string; the array that holds them is not counted. */
function measureKey(names: Names, clients: number): number {
  const keys = Array.from<string>({ length: clients }).fill('');
  const before = heldBytes();
  for (let client = 0; client < clients; client += 1) {
    keys[client] = Buffer.from(`${UPSTREAM}\0${names.of(client)}`, 'latin1').toString('latin1');
  }
  const bytes = heldBytes() - before;
  return keys.length === clients ? bytes / clients : Number.NaN; // they are in use until here
}
