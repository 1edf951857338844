/** What clients ask for, and how the upstream is spoken to. */
export interface Workload {
  readonly name: string;
  readonly title: string;
  readonly method: 'GET' | 'POST';
  /** Bytes of a request's body; of an answer's, for all: 1 KB. */
  readonly upload: number;
  readonly secure: boolean;
}

export const WORKLOADS: readonly Workload[] = [
  { name: 'get', title: 'GET 1 KB', method: 'GET', upload: 0, secure: false },
  // As in front of a payment API: only the upstream's side is over the network.
  { name: 'payment', title: 'POST 1 KB, to an upstream over TLS', method: 'POST', upload: 1024, secure: true },
];
