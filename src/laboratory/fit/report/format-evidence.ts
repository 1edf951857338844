/** What a log was taken for, and why: what stands above the table. */
import { writeDuration } from '../../../config/values/unit-schemas.ts';
import type { Fitted } from '../fit-experiment.ts';
import type { Disorder, Late } from '../arrival-sorter.ts';
import type { KnownLimit } from '../infer-bucket.ts';
import type { Skipped } from '../logged-request.ts';
import type { Surveyed } from '../log-survey.ts';
import { readUnclear, signsOf } from '../log-survey.ts';
import { count } from '../../../telemetry/explanations/format-values.ts';
import { formatDelay } from '../../../cli/format-delay.ts';
import { percent } from './format-percent.ts';
import { tellLimit } from './format-inferred-limit.ts';

/** @param known of the limit, what was told and is not taken from the log */
export function tellEvidence(log: string, fitted: Fitted, known: KnownLimit): string[] {
  const { surveyed, skipped, firstSkipped, aside, disorder } = fitted;
  const { requests, span } = surveyed;
  const head = [
    `${log}: ${count(requests, 'request', 'requests')} in ${writeDuration(Math.round(span / 1000) * 1000)}`,
    ...(firstSkipped === undefined ? [] : [tellSkipped(skipped, firstSkipped, surveyed)]),
    ...(aside === 0 ? [] : [`${count(aside, 'request was', 'requests were')} none to an upstream`]),
  ];
  return [
    head.join('; '),
    ...tellStage(fitted),
    ...tellDisorder(disorder, requests),
    ...tellProxy(surveyed),
    ...tellLimit(fitted, known),
  ];
}

/** Of a log that nobody waited for. */
function tellStage({ stage, rows }: Fitted): string[] {
  switch (stage) {
    case 'looking':
      return ['that is what has been read of it so far; it is played when all of it is'];
    case 'searching':
      return ['all of it has been read, and its limit was being searched'];
    case 'playing':
      return [`of them ${rows[0]?.requests ?? 0} have been played so far, and the first line below is all of the log`];
    default:
      return [];
  }
}

/** What a proxy's own log tells beyond statuses. */
function tellProxy(surveyed: Surveyed): string[] {
  const { refusedHere, gone, answers, upstreams } = surveyed;
  const lines: string[] = [];
  if (upstreams.length > 1) {
    const some = upstreams.slice(0, 3).join(', ');
    lines.push(
      `its requests went to several upstreams (${some}…), and are played as if to one: give fit the lines of one`,
    );
  }
  if (refusedHere > 0) {
    lines.push(`${count(refusedHere, 'refusal', 'refusals')} of the proxy's: demand, and no word of the upstream`);
  }
  if (gone > 0) lines.push(`${count(gone, 'client', 'clients')} went before the answer: demand too`);
  if (answers.unclear > 0) {
    const { limit, failure } = signsOf(surveyed);
    const meant = readUnclear(surveyed) === 'refused' ? '429s' : 'failures';
    const signs = `of what is told, ${limit} speak of a limit and ${failure} of failures`;
    lines.push(`${count(answers.unclear, 'attempt', 'attempts')} sent again, taken for ${meant}: ${signs}`);
  }
  return lines;
}

function tellSkipped(lines: number, { line, why }: Skipped, { upstreams }: Surveyed): string {
  const told = count(lines, 'line was none', 'lines were none');
  // Our own log has lines of other things as well.
  return upstreams.length > 0 ? told : `${told} (line ${line} ${why})`;
}

/** Why a log without a request is refused. */
export function tellNothing(log: string, { skipped, firstSkipped, aside }: Fitted): string {
  if (firstSkipped !== undefined) {
    return `${log}:${firstSkipped.line}: ${firstSkipped.why}; no request in ${count(skipped, 'line', 'lines')}`;
  }
  if (aside === 0) return `${log}: has no line below the names of its columns`;
  return `${log}: of ${count(aside, 'request', 'requests')} none was to an upstream: there is nothing to play`;
}

/** Why a log is refused that is not sorted. */
export function tellDisordered(log: string, { late, first }: Disorder, requests: number): string {
  const place = first === undefined ? log : `${log}:${first.line}: ${tellLate(first)}`;
  return `${place}, and ${late} of ${requests} requests (${percent(late / requests)}) are out of order so; sort the log by time`;
}

function tellDisorder({ late, first, long }: Disorder, requests: number): string[] {
  const lines: string[] = [];
  if (first !== undefined) {
    const all = late === 1 ? '1 request was' : `${late} requests (${percent(late / requests)}) were`;
    lines.push(`${all} out of order, and played late: line ${first.line} is ${tellLate(first)}; sort the log by time`);
  }
  if (long > 0) lines.push(`${long} requests that took more than a minute were played late`);
  return lines;
}

/** What is held to be put in order is a minute of the log. */
function tellLate({ after, by }: Late): string {
  return `${formatDelay(by)} older than line ${after}`;
}
