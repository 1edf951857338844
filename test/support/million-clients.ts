// A process of its own: as many distinct clients as that go through the gate. Prints what it holds in the end, as JSON.
//
//   node --expose-gc test/support/million-clients.ts SCOPE COUNT MAX_TRACKED

import { Gate } from '../../src/core/admission/gate.ts';
import type { Scope } from '../../src/core/events/proxy-events.ts';
import { Ticket } from '../../src/core/admission/ticket.ts';
import { NO_HINTS } from '../../src/core/exchange/attempt-outcome.ts';
import { seededRandom } from '../../src/simulator/seeded-random.ts';
import { MemoryStore } from '../../src/store/memory-store.ts';

const [scope, count, maxTracked] = [process.argv[2] as Scope, Number(process.argv[3]), Number(process.argv[4])];
const store = new MemoryStore({
  upstreams: [
    {
      name: 'api',
      scope,
      rate: { initialRate: undefined, maxRate: Number.POSITIVE_INFINITY, minRate: 0.1, cooldown: 1000 },
      queue: { maxWait: 1000, maxDepth: 100 },
      budget: { ratio: 0.2, burst: 10 },
    },
  ],
  maxTracked,
  maxLimits: maxTracked / 10,
  random: seededRandom(1),
  listen: () => undefined,
});
const gate = new Gate(store, () => undefined);
let settled = 0;

const before = heldBytes();
let now = 0;
for (let i = 0; i < count; i += 1) {
  now += 0.05;
  const client = i.toString(16).padStart(16, '0');
  const key = scope === 'upstream' ? '' : client;
  const ticket = new Ticket('api', client, 1, [{ upstream: 'api', nested: '', scope, key }], () => (settled += 1));
  ticket.nest = (i % 250_000).toString(16).padStart(16, '0');
  const admission = gate.arrive(ticket, now + 10_000, now);
  if (admission?.kind === 'admitted') {
    gate.sent(ticket, now);
    // One in ten is refused by the upstream: that makes limits of single clients, and cuts the shared one.
    gate.head(ticket, { kind: 'response', status: i % 10 === 0 ? 429 : 200, hints: NO_HINTS, took: 1 }, now);
    gate.end(ticket, now);
  } else if (admission === undefined) {
    gate.cancel(ticket, now);
  }
  gate.leave(ticket);
}
const bytes = heldBytes() - before;
const { clients, limits } = gate.view(now);
const bounds = Object.fromEntries(store.bounds.map(({ name, used, reached }) => [name, { used, reached }]));
console.log(JSON.stringify({ bytes, tracked: clients.tracked, limits: limits.length, settled, bounds }));

function heldBytes(): number {
  if (globalThis.gc === undefined) throw new Error('run me with --expose-gc');
  globalThis.gc();
  globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
