export interface ScaleCase {
  readonly name: string;
  readonly what: 'connections' | 'clients' | 'routes';
  readonly size: number;
  readonly connections: number;
  readonly clients: number;
  readonly routes: number;
}

const BASE = { connections: 64, clients: 1, routes: 1 };
const SIZES = {
  connections: [1, 10, 100, 1000, 10_000],
  clients: [1, 10, 100, 1000, 10_000, 100_000],
  routes: [1, 10, 100],
} as const;

/** Cases in which one quantity grows. */
export const CASES: readonly ScaleCase[] = (['connections', 'clients', 'routes'] as const).flatMap((what) =>
  SIZES[what].map((size) => ({ ...BASE, [what]: size, name: `${size} ${what}`, what, size })),
);
