import type { Part } from './parts.ts';

const MILLION = 1_000_000;
const LAWS = ['uniform', 'Zipf'] as const;
const LOADS = ['open', 'paced', 'overrun'] as const;
const TENS = [10, 100, 1000, 10_000];

/** Plans the measurements, in order. `smoke`: all of them, at minimal size. */
export function planParts(smoke: boolean): Part[] {
  const clients = smoke ? 5000 : MILLION;
  const requests = smoke ? 20_000 : 500_000; // enough to fill the queue
  return [
    { part: 'memory', clients },
    { part: 'pauses', clients, requests: smoke ? 5000 : 3 * MILLION, times: smoke ? 2 : 15 },
    ...LOADS.flatMap((load) =>
      LAWS.map((law): Part => ({ part: 'decisions', clients, law, load, requests, rounds: smoke ? 2 : 7 })),
    ),
    {
      part: 'queues',
      sizes: (smoke ? [10, 100] : TENS).map((queued) => ({ queued, clients: queued })),
      operations: smoke ? 100 : 20_000,
    },
    {
      part: 'queues',
      // At most the maximum queue length; one request each for more clients.
      sizes: (smoke ? [1, 100] : [1, ...TENS, 100_000]).map((of) => ({
        queued: smoke ? 100 : Math.max(10_000, of),
        clients: of,
      })),
      operations: smoke ? 100 : 20_000,
    },
  ];
}
