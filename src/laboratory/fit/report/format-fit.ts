import { drawChart } from '../../chart/draw-chart.ts';
import { linearScale } from '../../chart/chart-scale.ts';
import type { FitRow } from '../replay-candidate.ts';
import type { FitResult } from '../fit-experiment.ts';
import type { IdentifiedLimit } from '../limits/identify-limit.ts';
import type { KnownLimit } from '../infer-bucket.ts';
import type { LogSummary, LatencySummary } from '../log-survey.ts';
import type { UpstreamSpec } from '../../../simulator/upstream/upstream-model.ts';
import { formatDelay } from '../../../cli/format-delay.ts';
import { joinLines, formatTable } from '../../commands/text-table.ts';
import { StudyError } from '../../commands/study-error.ts';
import type { StudyReport } from '../../commands/study-report.ts';
import { describeUnsortedLog, formatEvidence, describeEmptyLog } from './format-evidence.ts';

/**
 * @param known the parts of the limit given by options instead of inferred from the log
 * @throws StudyError if the log has no request or is out of order
 */
export function formatFit(log: string, fitted: FitResult, known: KnownLimit): StudyReport {
  const { stage, surveyed, skipped, firstSkipped, aside, disorder, inferred, identified, upstream, rows } = fitted;
  if (stage === 'disordered') throw new StudyError(describeUnsortedLog(log, disorder, surveyed.requests));
  if (upstream !== undefined && surveyed.requests === 0) {
    throw new StudyError(describeEmptyLog(log, fitted));
  }
  const lines = [
    ...formatEvidence(log, fitted, known),
    '',
    ...formatTable(
      ['policy', 'served', 'refused', 'failed', 'sends', 'waste', 'p50', 'p99'],
      [formatLogRow(surveyed), ...rows.map(formatFitRow)],
    ),
    '',
    'refused: ended in a 429 of the upstream or of the proxy; waste: attempts rejected or failed by the upstream, per success;',
    'p50, p99: latency of successes, including waits. The first line is the log itself; the others are simulated.',
  ];
  return {
    text: joinLines(lines),
    isEmpty: surveyed.requests === 0,
    json: {
      stage,
      log: toLogJson(surveyed),
      skipped,
      firstSkipped,
      aside,
      disorder,
      inferred: inferred ?? null,
      identified: toIdentifiedJson(identified),
      upstream: toUpstreamJson(upstream),
      rows,
    },
    draw: () => drawFit(log, rows),
  };
}

function formatLogRow({ successes, refused, failed, gone, answers, latency }: LogSummary): string[] {
  const sends = Object.values(answers).reduce((a, b) => a + b, 0);
  const wasted = answers.refused + answers.failed + answers.unclear;
  return [
    '(the log)',
    // A client that disconnected was not served.
    ...[successes, refused, failed + gone, sends].map(String),
    (successes === 0 ? wasted : wasted / successes).toFixed(3),
    ...(latency === undefined ? ['–', '–'] : [formatDelay(latency.p50), formatDelay(latency.p99)]),
  ];
}

function formatFitRow({ policy, successes, refused, failed, sends, waste, latency }: FitRow): string[] {
  return [
    policy,
    ...[successes, refused, failed, sends].map(String),
    waste.toFixed(3),
    formatDelay(latency.p50),
    formatDelay(latency.p99),
  ];
}

/** Two of the thousand quantiles are enough for JSON. */
function toLogJson({ service, refusing, ...others }: LogSummary): object {
  return { ...others, service: toLatencyJson(service), refusing: toLatencyJson(refusing) };
}

function toLatencyJson(took: LatencySummary | undefined): LatencySummary | null {
  return took === undefined ? null : { p50: took.p50, p99: took.p99 };
}

function toIdentifiedJson(identified: IdentifiedLimit | undefined): object | null {
  if (identified === undefined) return null;
  return {
    ...identified,
    margin: identified.margin ?? null,
    queue: identified.queue ?? null,
    sharing: identified.sharing ?? null,
  };
}

function toUpstreamJson(upstream: UpstreamSpec | undefined): object | null {
  if (upstream === undefined) return null;
  const { limit, latency, errors = [] } = upstream;
  return { limit, latency: { kind: latency?.kind, mean: latency?.mean }, errors };
}

function drawFit(log: string, rows: readonly FitRow[]): string {
  const offered = Math.max(1, ...rows.map(({ requests }) => requests));
  return drawChart({
    title: `${log} replayed with other policies`,
    note: rows.map(({ policy }, i) => `${i + 1}: ${policy}`).join(', '),
    x: {
      label: 'policy',
      scale: linearScale([rows.length], 1),
      format: (value) => (Number.isInteger(value) ? String(value) : ''),
    },
    y: { label: 'share of requests', scale: linearScale([1]), format: (part) => String(Number(part.toFixed(2))) },
    lines: [
      { name: 'served', points: rows.map(({ successes }, i) => [i + 1, successes / offered]) },
      { name: 'refused', points: rows.map(({ refused }, i) => [i + 1, refused / offered]) },
      { name: 'waste', points: rows.map(({ waste }, i) => [i + 1, Math.min(1, waste)]) },
    ],
  });
}
