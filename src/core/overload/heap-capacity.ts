/** The numbers of things that grow with traffic on the JavaScript heap. */
export interface HeapBoundSizes {
  /** Client connections. */
  readonly connections: number;
  /** Requests at a time. */
  readonly requests: number;
  /** Clients that are remembered. */
  readonly clients: number;
  /** Limits of single clients or credentials that are remembered. */
  readonly clientLimits: number;
}

/** Bytes of each, measured on Node 24 and rounded up; most of a client is in buffers outside the heap. */
const BYTES_EACH: HeapBoundSizes = { connections: 4096, requests: 7168, clients: 256, clientLimits: 2816 };
/** The share of the heap for all of a kind. The rest is for Node, this program and garbage. */
const HEAP_SHARES: HeapBoundSizes = { connections: 0.15, requests: 0.25, clients: 0.1, clientLimits: 0.15 };

const CLIENT_QUOTA_SHARE = 0.1;

/** For how many clients their quotas fit in the heap; at least one. @param bytesEach of one client @param heapBytes the heap limit */
export function capQuotaClients(configured: number, bytesEach: number, heapBytes: number): number {
  return Math.max(1, Math.min(configured, Math.floor((CLIENT_QUOTA_SHARE * heapBytes) / bytesEach)));
}

export const HEAP_BOUND_SIZES = [
  'connections',
  'requests',
  'clients',
  'clientLimits',
] as const satisfies readonly (keyof HeapBoundSizes)[];

/** Caps the configured numbers by what fits in the heap; at least one each. @param heapBytes the heap limit */
export function capByHeap(configured: HeapBoundSizes, heapBytes: number): HeapBoundSizes {
  const cap = (kind: keyof HeapBoundSizes): number =>
    Math.max(1, Math.min(configured[kind], Math.floor((HEAP_SHARES[kind] * heapBytes) / BYTES_EACH[kind])));
  return {
    connections: cap('connections'),
    requests: cap('requests'),
    clients: cap('clients'),
    clientLimits: cap('clientLimits'),
  };
}
