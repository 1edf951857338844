import type { Report, Sample } from '../../../src/sim/report/report.ts';
import { settlingTime } from '../../../src/sim/report/report.ts';
import type { Figure, Row } from './rows.ts';

export type Figures = Partial<Record<Figure, number>> & { readonly goodput: number; readonly waste: number };

/** What a run comes to, in the figures that goals name; those that compare with the oracle need its figures. */
export function measure(row: Row, report: Report, oracle: Figures | undefined): Figures {
  const { changeAt, changeTo } = row;
  const group = report.groups.find(({ name }) => name === row.group);
  const between = (of: (sample: Sample) => number): number =>
    report.series.reduce((sum, sample, i) => {
      const before = report.series[i - 1]?.at ?? 0;
      return sample.at > (changeAt ?? 0) && sample.at <= (changeTo ?? 0)
        ? sum + (of(sample) * (sample.at - before)) / 1000
        : sum;
    }, 0);
  const isOutage = row.family === 'outage';
  const settleFrom = isOutage ? changeTo : changeAt;
  return {
    goodput: report.goodput,
    waste: report.waste,
    failures: report.failures,
    p99: (group ?? report).latency.p99,
    jain: report.jain,
    ...(group === undefined ? {} : { served: group.served, share: group.share }),
    ...(oracle === undefined
      ? {}
      : {
          ofOracle: report.goodput / oracle.goodput,
          addedOfOracle: ((group ?? report).latency.p99 + 1) / ((oracle.p99 ?? 0) + 1),
        }),
    ...(settleFrom === undefined
      ? {}
      : { settle: settlingTime(report.series, settleFrom, report.series.at(-1)?.at ?? 0) ?? Number.POSITIVE_INFINITY }),
    ...(changeAt === undefined || isOutage
      ? {}
      : {
          wastedOnStep: report.series.reduce(
            (sum, { at, wasted }) => (at > changeAt && at <= changeAt + 5000 ? sum + wasted / 4 : sum),
            0,
          ),
        }),
    ...(isOutage ? { calls: between(({ sent }) => sent) } : {}),
  };
}
