import type { Table } from '../control/table.ts';
import type { Spread } from '../overhead/runs.ts';
import { spreadOf } from '../overhead/runs.ts';
import type { Run } from './load.ts';
import { CONNECTIONS } from './load.ts';
import type { Setup } from './setups.ts';
import type { Workload } from './workloads.ts';

/** Of each setup all its runs, in the order of `startSetups`. */
export type Runs = ReadonlyMap<Setup, readonly Run[]>;

export interface Comparison {
  /** What two workers do, of what one does. */
  readonly ratio: number;
  /** Of what two proxies do that share nothing. */
  readonly ofApart: number;
  /** What `ratio` would be, if a request took no more with two workers than with one, and no processor were ever idle. */
  readonly atMost: number;
}

/** By medians. */
export function compare(runs: Runs, processors: number): Comparison {
  const [one = [], two = [], apart = []] = [...runs.values()];
  const rate = (own: readonly Run[]): number => spread(own, (each) => each.rate).median;
  const needed = spread(one, ({ proxy, upstream, clients }) => proxy + upstream + clients).median;
  return {
    ratio: rate(two) / rate(one),
    ofApart: rate(two) / rate(apart),
    atMost: (processors * 1e6) / needed / rate(one),
  };
}

export function tableOf(workload: Workload, runs: Runs, processors: number): Table {
  const { ratio, ofApart, atMost } = compare(runs, processors);
  return {
    title: `${workload.title}, ${CONNECTIONS} connections, ${processors} processors`,
    head: ['', 'requests/s', 'min–max', 'p99', 'µs of the proxy', 'of nginx', 'of wrk'],
    rows: [...runs].map(([setup, own]) => rowOf(setup, own)),
    note:
      `Two workers do ${ratio.toFixed(2)} times what one does, of at most ${atMost.toFixed(2)}; ` +
      `${ofApart.toFixed(2)} times what two proxies do that share nothing.`,
  };
}

function rowOf({ name }: Setup, own: readonly Run[]): string[] {
  const rate = spread(own, (each) => each.rate);
  const median = (figure: (each: Run) => number, digits = 0): string => spread(own, figure).median.toFixed(digits);
  return [
    name,
    rate.median.toFixed(0),
    `${rate.min.toFixed(0)}–${rate.max.toFixed(0)}`,
    `${median(({ p99 }) => p99, 1)} ms`,
    median(({ proxy }) => proxy),
    median(({ upstream }) => upstream),
    median(({ clients }) => clients),
  ];
}

function spread(own: readonly Run[], figure: (each: Run) => number): Spread {
  return spreadOf(own.map(figure)) ?? { median: Number.NaN, min: Number.NaN, max: Number.NaN };
}
