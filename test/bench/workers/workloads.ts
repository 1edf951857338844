/** A kind of request, and the protocol to the upstream. */
export interface WorkersWorkload {
  readonly name: string;
  readonly title: string;
  readonly method: 'GET' | 'POST';
  /** Bytes of a request body; every response body has 1 KB. */
  readonly upload: number;
  readonly secure: boolean;
}

export const WORKLOADS: readonly WorkersWorkload[] = [
  { name: 'get', title: 'GET 1 KB', method: 'GET', upload: 0, secure: false },
  // This resembles a payment API: only the upstream is reached over the network.
  { name: 'payment', title: 'POST 1 KB, to an upstream over TLS', method: 'POST', upload: 1024, secure: true },
];
