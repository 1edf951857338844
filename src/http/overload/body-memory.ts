import { ReplayMemory } from './replay-memory.ts';

/** The bodies of all responses that are read for their costs, together. */
const COST_MEMORY_BYTES = 16 * 1024 * 1024;

export interface BodyMemory {
  /** Of request bodies, for a retry. */
  readonly replayMemory: ReplayMemory;
  /** Of response bodies, to read their costs. */
  readonly costMemory: ReplayMemory;
}

/** @param replayBytes the bound on the request bodies that are kept */
export function createBodyMemory(replayBytes: number): BodyMemory {
  return {
    replayMemory: new ReplayMemory(replayBytes),
    costMemory: new ReplayMemory(COST_MEMORY_BYTES, 'cost_memory'),
  };
}
