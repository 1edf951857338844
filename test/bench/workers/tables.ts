import type { ControlTable } from '../control/table.ts';
import type { Spread } from '../overhead/runs.ts';
import { spreadOf } from '../overhead/runs.ts';
import type { WorkersRun } from './load.ts';
import { CONNECTIONS } from './load.ts';
import type { Setup } from './setups.ts';
import type { WorkersWorkload } from './workloads.ts';

/** All runs of each setup, in the order of `startSetups`. */
export type Runs = ReadonlyMap<Setup, readonly WorkersRun[]>;

export interface SetupComparison {
  /** Throughput of two workers ÷ one worker. */
  readonly ratio: number;
  /** Throughput of two workers ÷ two separate proxies. */
  readonly ofApart: number;
  /** `ratio` if a request cost the same with two workers as with one, and no processor were idle. */
  readonly atMost: number;
}

/** Compares medians of ratios within rounds, where other load affects all runs alike. */
export function compare(runs: Runs, processors: number): SetupComparison {
  const [one = [], two = [], apart = []] = [...runs.values()];
  const rates = (own: readonly WorkersRun[]): readonly number[] => own.map(({ rate }) => rate);
  const processorsUsed = one.map(({ proxy, upstream, clients, rate }) => (rate * (proxy + upstream + clients)) / 1e6);
  const all = one.map(() => processors);
  return {
    ratio: medianOf(rates(two), rates(one)),
    ofApart: medianOf(rates(two), rates(apart)),
    atMost: Math.min(2, medianOf(all, processorsUsed)),
  };
}

/** Returns the median of the ratios of each round. */
function medianOf(these: readonly number[], those: readonly number[]): number {
  const ratios = these.map((each, round) => each / (those[round] ?? Number.NaN));
  return spreadOf(ratios)?.median ?? Number.NaN;
}

/** @param share processors that each worker is limited to; undefined: no limit */
export function tableOf(
  workload: WorkersWorkload,
  share: number | undefined,
  runs: Runs,
  processors: number,
): ControlTable {
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

function rowOf({ name }: Setup, own: readonly WorkersRun[]): string[] {
  const rate = spread(own, (each) => each.rate);
  const median = (figure: (each: WorkersRun) => number, digits = 0): string =>
    spread(own, figure).median.toFixed(digits);
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

function spread(own: readonly WorkersRun[], figure: (each: WorkersRun) => number): Spread {
  return spreadOf(own.map(figure)) ?? { median: Number.NaN, min: Number.NaN, max: Number.NaN };
}
