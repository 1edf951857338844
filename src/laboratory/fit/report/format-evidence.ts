/** The lines above the table: how the log was interpreted, and why. */
import { formatDuration } from '../../../config/values/unit-schemas.ts';
import type { FitResult } from '../fit-experiment.ts';
import type { LogDisorder, LateLine } from '../arrival-sorter.ts';
import type { KnownLimit } from '../infer-bucket.ts';
import type { SkippedLine } from '../logged-request.ts';
import type { LogSummary } from '../log-survey.ts';
import { classifyUnclear, countSigns } from '../log-survey.ts';
import { pluralize } from '../../../telemetry/format-values.ts';
import { formatDelay } from '../../../cli/format-delay.ts';
import { formatPercent } from './format-percent.ts';
import { formatInferredLimit } from './format-inferred-limit.ts';

/** @param known the parts of the limit given by options instead of inferred from the log */
export function formatEvidence(log: string, fitted: FitResult, known: KnownLimit): string[] {
  const { surveyed, skipped, firstSkipped, aside, disorder } = fitted;
  const { requests, span } = surveyed;
  const head = [
    `${log}: ${pluralize(requests, 'request', 'requests')} in ${formatDuration(Math.round(span / 1000) * 1000)}`,
    ...(firstSkipped === undefined ? [] : [formatSkipped(skipped, firstSkipped, surveyed)]),
    ...(aside === 0 ? [] : [`${pluralize(aside, 'request was', 'requests were')} not for an upstream`]),
  ];
  return [
    head.join('; '),
    ...formatStage(fitted),
    ...formatDisorder(disorder, requests),
    ...formatProxyEvidence(surveyed),
    ...formatInferredLimit(fitted, known),
  ];
}

/** The progress of a run that was stopped. */
function formatStage({ stage, rows }: FitResult): string[] {
  switch (stage) {
    case 'looking':
      return ['read so far; the replay begins after the last line'];
    case 'searching':
      return ['read completely; stopped while its limit was inferred'];
    case 'playing':
      return [`${rows[0]?.requests ?? 0} of them were replayed; the first line below covers the whole log`];
    default:
      return [];
  }
}

/** What Tidegate's own log reports beyond statuses. */
function formatProxyEvidence(surveyed: LogSummary): string[] {
  const { refusedHere, gone, answers, upstreams } = surveyed;
  const lines: string[] = [];
  if (upstreams.length > 1) {
    const some = upstreams.slice(0, 3).join(', ');
    lines.push(
      `its requests went to several upstreams (${some}…), but are replayed to one: filter the log by upstream first`,
    );
  }
  if (refusedHere > 0) {
    lines.push(
      `${pluralize(refusedHere, 'refusal', 'refusals')} by the proxy: counted as demand, not as responses of the upstream`,
    );
  }
  if (gone > 0) {
    lines.push(`${pluralize(gone, 'client', 'clients')} disconnected before the response: counted as demand`);
  }
  if (answers.unclear > 0) {
    const { limit, failure } = countSigns(surveyed);
    const meant = classifyUnclear(surveyed) === 'refused' ? '429s' : 'failures';
    const signs = `where the log gives a reason, ${limit} indicate a limit and ${failure} a failure`;
    lines.push(`${pluralize(answers.unclear, 'attempt', 'attempts')} retried, counted as ${meant}: ${signs}`);
  }
  return lines;
}

function formatSkipped(lines: number, { line, why }: SkippedLine, { upstreams }: LogSummary): string {
  const text = pluralize(lines, 'line is not a request', 'lines are not requests');
  // Tidegate's log has other lines as well.
  return upstreams.length > 0 && why.startsWith('has no status') ? text : `${text} (line ${line} ${why})`;
}

/** The error for a log without a request. */
export function describeEmptyLog(log: string, { skipped, firstSkipped, aside }: FitResult): string {
  if (firstSkipped !== undefined) {
    return `${log}:${firstSkipped.line}: ${firstSkipped.why}; no request in ${pluralize(skipped, 'line', 'lines')}`;
  }
  if (aside === 0) return `${log}: has no line below its header`;
  return `${log}: of ${pluralize(aside, 'request', 'requests')} none was for an upstream: there is nothing to replay`;
}

/** The error for a log that is not sorted. */
export function describeUnsortedLog(log: string, { late, first }: LogDisorder, requests: number): string {
  const place = first === undefined ? log : `${log}:${first.line}: ${formatLateLine(first)}`;
  return `${place}, and ${late} of ${requests} requests (${formatPercent(late / requests)}) are out of order; sort the log by time`;
}

function formatDisorder({ late, first, long }: LogDisorder, requests: number): string[] {
  const lines: string[] = [];
  if (first !== undefined) {
    const all = late === 1 ? '1 request was' : `${late} requests (${formatPercent(late / requests)}) were`;
    lines.push(
      `${all} out of order, and replayed late: line ${first.line} is ${formatLateLine(first)}; sort the log by time`,
    );
  }
  if (long > 0) lines.push(`${long} requests took more than a minute, and were replayed late`);
  return lines;
}

/** Sorting buffers a minute of the log. */
function formatLateLine({ after, by }: LateLine): string {
  return `${formatDelay(by)} older than line ${after}`;
}
