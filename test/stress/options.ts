import { parseArgs } from 'node:util';

/** Some runs in a row, under the same load. */
export interface RunSeries {
  readonly runs: number;
  /** Endless loops that take processor time beside the tests. */
  readonly busyLoops: number;
}

export interface StressOptions {
  readonly series: readonly RunSeries[];
  /** What vitest gets: files, or `--project NAME`. All tests if it is empty. */
  readonly vitestArgs: readonly string[];
}

export const USAGE = `Usage: npm run test:stress -- [--runs N] [--busy N] [-- VITEST-ARGUMENT…]
  --runs N   runs in a row; by default 20, and then 5 beside two busy loops
  --busy N   endless loops beside the tests, 0 by default
For example: npm run test:stress -- --runs 3 --busy 2 -- test/integration/limits`;

const DEFAULT_SERIES: readonly RunSeries[] = [
  { runs: 20, busyLoops: 0 },
  { runs: 5, busyLoops: 2 },
];

/** Returns undefined if an argument is wrong. */
export function parseOptions(args: readonly string[]): StressOptions | undefined {
  const end = args.indexOf('--');
  const own = end === -1 ? args : args.slice(0, end);
  const vitestArgs = end === -1 ? [] : args.slice(end + 1);
  try {
    const { values } = parseArgs({ args: [...own], options: { runs: { type: 'string' }, busy: { type: 'string' } } });
    if (values.runs === undefined && values.busy === undefined) return { series: DEFAULT_SERIES, vitestArgs };
    const runs = parseCount(values.runs ?? '20', 1);
    const busyLoops = parseCount(values.busy ?? '0', 0);
    return runs === undefined || busyLoops === undefined ? undefined : { series: [{ runs, busyLoops }], vitestArgs };
  } catch {
    return undefined;
  }
}

function parseCount(text: string, least: number): number | undefined {
  const count = Number(text);
  return /^\d{1,4}$/.test(text) && count >= least ? count : undefined;
}
