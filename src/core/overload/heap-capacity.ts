/** What grows with traffic on the JavaScript heap, by number. */
export interface Sizes {
  /** From clients. */
  readonly connections: number;
  /** At a time. */
  readonly requests: number;
  /** Clients that are remembered. */
  readonly clients: number;
  /** Limits of single clients or credentials that are remembered. */
  readonly clientLimits: number;
}

/** Bytes that one takes, rounded up from what was measured on Node 24; of a client most is in buffers beside the heap. */
const EACH: Sizes = { connections: 4096, requests: 7168, clients: 256, clientLimits: 2816 };
/** The part of the heap that all of a kind may take. What is left is for Node, this program and garbage. */
const PARTS: Sizes = { connections: 0.15, requests: 0.25, clients: 0.1, clientLimits: 0.15 };

export const SIZES = ['connections', 'requests', 'clients', 'clientLimits'] as const satisfies readonly (keyof Sizes)[];

/** How much of what the configuration allows the heap has room for; at least one. @param heap bytes it may grow to */
export function fitHeap(wanted: Sizes, heap: number): Sizes {
  const fit = (kind: keyof Sizes): number =>
    Math.max(1, Math.min(wanted[kind], Math.floor((PARTS[kind] * heap) / EACH[kind])));
  return {
    connections: fit('connections'),
    requests: fit('requests'),
    clients: fit('clients'),
    clientLimits: fit('clientLimits'),
  };
}
