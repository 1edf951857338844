import type { ControlTable } from '../control/table.ts';
import { GOALS, isMet } from './goals.ts';
import type { OverheadRun, Spread } from './runs.ts';
import { cpu, figureOf, PACED, pairedRatio, throughput } from './runs.ts';
import type { OverheadWorkload } from './workloads.ts';
import { WORKLOADS } from './workloads.ts';

/** Cost per request of each contender for one workload. */
export function workloadTable(
  workload: OverheadWorkload,
  runs: readonly OverheadRun[],
  contenders: readonly OverheadRun['contender'][],
): ControlTable {
  const costOf = (contender: OverheadRun['contender']): Spread | undefined =>
    figureOf(runs, contender, workload.name, cpu);
  const ratio = (mine: Spread | undefined, other: OverheadRun['contender']): string => {
    const theirs = costOf(other);
    return mine === undefined || theirs === undefined ? '' : (mine.median / theirs.median).toFixed(2);
  };
  return {
    title: `${workload.title}: processor time a request`,
    head: ['proxy', 'µs', 'min–max', '÷ bare http-proxy', '÷ floor', 'requests/s', 'p50', 'p99', 'resident'],
    rows: contenders.flatMap((contender) => {
      const cost = costOf(contender);
      if (cost === undefined) return [];
      const figure = (of: (run: OverheadRun) => number | undefined): number =>
        figureOf(runs, contender, workload.name, of)?.median ?? 0;
      return [
        [
          contender,
          cost.median.toFixed(0),
          `${cost.min.toFixed(0)}–${cost.max.toFixed(0)}`,
          ratio(cost, 'http-proxy'),
          ratio(cost, 'floor'),
          figure(throughput).toFixed(0),
          millis(figure((run) => run.p50)),
          millis(figure((run) => run.p99)),
          `${(figure((run) => run.resident) / 2 ** 20).toFixed(0)} MiB`,
        ],
      ];
    }),
  };
}

/** Latency that each contender adds at the same rate. */
export function latencyTable(
  rate: number,
  runs: readonly OverheadRun[],
  contenders: readonly OverheadRun['contender'][],
): ControlTable {
  const median = (contender: OverheadRun['contender'], of: (run: OverheadRun) => number): number =>
    figureOf(runs, contender, PACED, of)?.median ?? Number.NaN;
  return {
    title: `GET 1 KB at ${rate.toFixed(0)} requests a second, a fifth of what the floor can do`,
    head: ['proxy', 'p50', 'p99', 'added p50', 'added p99', 'p99 min–max'],
    rows: (['direct', ...contenders] as const).map((contender) => {
      const p99 = figureOf(runs, contender, PACED, (run) => run.p99);
      const added = (of: (run: OverheadRun) => number): string =>
        contender === 'direct' ? '' : millis(median(contender, of) - median('direct', of));
      return [
        contender === 'direct' ? 'none' : contender,
        millis(median(contender, (run) => run.p50)),
        millis(median(contender, (run) => run.p99)),
        added((run) => run.p50),
        added((run) => run.p99),
        p99 === undefined ? '' : `${p99.min.toFixed(2)}–${p99.max.toFixed(2)} ms`,
      ];
    }),
  };
}

/** Tidegate compared with another build and with the minimal proxy: geometric means of the ratios of each round. */
export function pairedTable(runs: readonly OverheadRun[]): ControlTable {
  const ratio = (contender: OverheadRun['contender'], other: OverheadRun['contender'], workload: string): string => {
    const paired = pairedRatio(runs, [contender, other], workload);
    return paired === undefined ? '' : `${paired.mean.toFixed(3)} ± ${(paired.mean * paired.error).toFixed(3)}`;
  };
  return {
    title: 'Processor time a request: geometric mean of the ratios of each round ± its standard error',
    head: ['', 'now ÷ before', 'now ÷ floor', 'before ÷ floor'],
    rows: [...WORKLOADS, { name: PACED, title: 'GET 1 KB at a fifth of the floor’s load' }].map(({ name, title }) => [
      title,
      ratio('tidegate', 'before', name),
      ratio('tidegate', 'floor', name),
      ratio('before', 'floor', name),
    ]),
  };
}

export function goalTable(runs: readonly OverheadRun[]): ControlTable {
  return {
    title: 'Goals, as ratios of medians',
    head: ['ratio', 'goal', 'measured', ''],
    rows: GOALS.map((goal) => {
      const ratio = goal.ratio(runs);
      const { bound } = goal;
      const wanted = 'most' in bound ? `≤ ${bound.most}` : `≥ ${bound.least}`;
      const verdict = ratio === undefined ? 'not measured' : isMet(goal, ratio) ? 'met' : 'MISSED';
      return [goal.title, wanted, ratio?.toFixed(2) ?? '', verdict];
    }),
  };
}

function millis(value: number): string {
  return `${value.toFixed(2)} ms`;
}
