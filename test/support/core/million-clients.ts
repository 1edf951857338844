// Sends COUNT distinct clients through the gate, and prints its final contents as JSON. Runs in its own process.
//
//   node --expose-gc test/support/core/million-clients.ts SCOPE COUNT MAX_TRACKED

import { Gate } from '../../../src/core/admission/gate.ts';
import type { LimitScope } from '../../../src/core/limits/limit-state.ts';
import { Ticket } from '../../../src/core/admission/ticket.ts';
import { NO_HINTS } from '../../../src/core/hints/hints.ts';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';

const [scope, count, maxTracked] = [process.argv[2] as LimitScope, Number(process.argv[3]), Number(process.argv[4])];
const store = new MemoryStore({
  upstreams: [
    {
      name: 'api',
      scope,
      rate: {
        ...{ initialRate: undefined, maxRate: Number.POSITIVE_INFINITY, minRate: 0.1, cooldown: 1000 },
        isPerClient: scope !== 'upstream',
      },
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
  const addressGroup = (i % 250_000).toString(16).padStart(16, '0');
  const refs = [{ upstream: 'api', nested: '', scope, key }];
  const ticket = new Ticket('api', client, 1, refs, () => (settled += 1), { addressGroup });
  const admission = gate.requestAdmission(ticket, now + 10_000, now);
  if (admission?.kind === 'admitted') {
    gate.onSent(ticket, now);
    // The upstream rejects one in ten, which creates per-client limits and cuts the shared one.
    gate.onOutcome(ticket, { kind: 'response', status: i % 10 === 0 ? 429 : 200, hints: NO_HINTS, took: 1 }, now);
    gate.onAttemptEnd(ticket, now);
  } else if (admission === undefined) {
    gate.cancel(ticket, now);
  }
  gate.onExchangeEnd(ticket);
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
