/** A kind of request. */
export interface OverheadWorkload {
  readonly name: string;
  readonly title: string;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly upload: number;
  readonly download: number;
}

const KIB = 1024;

export const WORKLOADS: readonly OverheadWorkload[] = [
  { name: 'get-1k', title: 'GET 1 KB', method: 'GET', path: '/1k', upload: 0, download: KIB },
  { name: 'post-1k', title: 'POST 1 KB', method: 'POST', path: '/1k', upload: KIB, download: KIB },
  { name: 'get-1m', title: 'GET 1 MB', method: 'GET', path: '/1m', upload: 0, download: KIB * KIB },
];

/** Keep-alive connections of the clients. */
export const CONNECTIONS = 64;
