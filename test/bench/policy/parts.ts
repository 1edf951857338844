import type { Law } from './choose-clients.ts';
import type { Decisions, LimitLoad } from './decisions.ts';
import { measureDecisions } from './decisions.ts';
import type { Size } from './queue-harness.ts';
import type { Memory } from './memory.ts';
import { measureMemory } from './memory.ts';
import type { Pauses } from './pauses.ts';
import { measurePauses } from './pauses.ts';
import type { Queues } from './queues.ts';
import { measureQueues } from './queues.ts';

/** A measurement in its own process, so that measurements do not affect each other. */
export type Part =
  | { readonly part: 'memory'; readonly clients: number }
  | {
      readonly part: 'decisions';
      readonly clients: number;
      readonly law: Law;
      readonly load: LimitLoad;
      readonly requests: number;
      readonly rounds: number;
    }
  | { readonly part: 'pauses'; readonly clients: number; readonly requests: number; readonly times: number }
  | { readonly part: 'queues'; readonly sizes: readonly Size[]; readonly operations: number };

export type PartFigures =
  | ({ readonly part: 'memory' } & Memory)
  | ({ readonly part: 'decisions' } & Decisions)
  | ({ readonly part: 'pauses' } & Pauses)
  | { readonly part: 'queues'; readonly queues: readonly Queues[] };

export async function measure(part: Part): Promise<PartFigures> {
  switch (part.part) {
    case 'memory':
      return { part: 'memory', ...measureMemory(part.clients) };
    case 'decisions': {
      const { law, load, clients, requests, rounds } = part;
      return { part: 'decisions', ...measureDecisions(law, load, clients, requests, rounds) };
    }
    case 'pauses':
      return { part: 'pauses', ...(await measurePauses(part.clients, part.requests, part.times)) };
    case 'queues':
      return { part: 'queues', queues: part.sizes.map((size) => measureQueues(size, part.operations)) };
  }
}
