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
  /** What `ratio` would be, if a request took no more with two workers than with one, and no processor had to be idle. */
  readonly atMost: number;
}

/** By the medians of what the rounds compare: what else the machine does meets all runs of one alike. */
export function compare(runs: Runs, processors: number): Comparison {
  const [one = [], two = [], apart = []] = [...runs.values()];
  const rates = (own: readonly Run[]): readonly number[] => own.map(({ rate }) => rate);
  const processorsUsed = one.map(({ proxy, upstream, clients, rate }) => (rate * (proxy + upstream + clients)) / 1e6);
  const all = one.map(() => processors);
  return {
    ratio: medianOf(rates(two), rates(one)),
    ofApart: medianOf(rates(two), rates(apart)),
    atMost: Math.min(2, medianOf(all, processorsUsed)),
  };
}

/** Of each of these to that of the same round. */
function medianOf(these: readonly number[], those: readonly number[]): number {
  const ratios = these.map((each, round) => each / (those[round] ?? Number.NaN));
  return spreadOf(ratios)?.median ?? Number.NaN;
}

/** @param share processors that each worker is held to; undefined: what the machine has */
export function tableOf(workload: Workload, share: number | undefined, runs: Runs, processors: number): Table {
  const { ratio, ofApart, atMost } = compare(runs, processors);
  const held = share === undefined ? '' : `, ${share} for each worker`;
  return {
    title: `${workload.title}, ${CONNECTIONS} connections, ${processors} processors${held}`,
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
