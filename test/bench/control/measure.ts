import type { Millis } from '../../../src/core/scalars.ts';
import type { SimulationReport, ReportSample } from '../../../src/simulator/report/simulation-report.ts';
import { settlingTime } from '../../../src/simulator/report/simulation-report.ts';
import type { Figure, ControlRow } from './rows/row.ts';

/** `settle` is Infinity if a run never settled, `waste` if nothing succeeded. */
export type ControlFigures = Partial<Record<Figure, number>> & { readonly goodput: number; readonly waste: number };

/** Returns the figures of a run. Those relative to the oracle need the oracle's figures. */
export function measure(row: ControlRow, report: SimulationReport, oracle: ControlFigures | undefined): ControlFigures {
  const { changeAt, changeTo } = row;
  const group = report.groups.find(({ name }) => name === row.group);
  const { p50, p99 } = (group ?? report).latency;
  const isOutage = row.family === 'outage';
  const settleFrom = isOutage ? changeTo : changeAt;
  return {
    goodput: report.goodput,
    waste: report.counts.successes === 0 ? Number.POSITIVE_INFINITY : report.waste,
    failures: report.failures,
    p50,
    p99,
    oscillation: report.oscillation,
    jain: report.jain,
    ...(row.scenario.upstream.limit.kind === 'workers' ? serviceFigures(report, oracle) : {}),
    ...(group === undefined ? {} : { served: group.served, share: group.share }),
    ...(oracle === undefined
      ? {}
      : { ofOracle: report.goodput / oracle.goodput, addedOfOracle: (p99 + 1) / ((oracle.p99 ?? 0) + 1) }),
    ...(settleFrom === undefined
      ? {}
      : { settle: settlingTime(report.series, settleFrom, report.series.at(-1)?.at ?? 0) ?? Number.POSITIVE_INFINITY }),
    ...(changeAt === undefined || isOutage
      ? {}
      : { wastedOnStep: countBetween(report, changeAt, changeAt + 5000, ({ wasted }) => wasted) }),
    ...(isOutage ? { calls: countBetween(report, changeAt ?? 0, changeTo ?? 0, ({ sent }) => sent) } : {}),
  };
}

/** Waits are those of successes: without any, they have no figures. */
function serviceFigures(
  { refused, counts, latency, upstreamWait }: SimulationReport,
  oracle: ControlFigures | undefined,
): Partial<ControlFigures> {
  const { successes, abandoned } = counts;
  const shares = { refused, abandoned: abandoned === 0 ? 0 : abandoned / (successes + abandoned) };
  if (successes === 0) return shares;
  const wait = latency.p50 + upstreamWait.p50;
  return {
    ...shares,
    upstreamP50: upstreamWait.p50,
    upstreamP99: upstreamWait.p99,
    ...(oracle === undefined ? {} : { overOracle: wait - (oracle.p50 ?? 0) - (oracle.upstreamP50 ?? 0) }),
  };
}

function countBetween(
  { series }: SimulationReport,
  from: Millis,
  to: Millis,
  rateOf: (sample: ReportSample) => number,
): number {
  return series.reduce((sum, sample, i) => {
    const began = series[i - 1]?.at ?? 0;
    return sample.at > from && sample.at <= to ? sum + (rateOf(sample) * (sample.at - began)) / 1000 : sum;
  }, 0);
}
