/** The upstream that the log is replayed to, and the evidence for it. */
import { formatRate } from '../../../config/values/unit-schemas.ts';
import { NO_RETRIES } from '../direct-clients.ts';
import type { FitResult } from '../fit-experiment.ts';
import type { InferredBucket, KnownLimit } from '../infer-bucket.ts';
import type { LogSummary } from '../log-survey.ts';
import type { UpstreamSpec } from '../../../simulator/upstream/upstream-model.ts';
import { formatDelay } from '../../../cli/format-delay.ts';
import { formatPercent } from './format-percent.ts';

/** Share of accepted attempts. A token bucket is found with less; a window of a minute differs by half. */
const MAX_DEVIATION = 0.1;
/** Too few refusals to infer a limit from. */
const MIN_REFUSALS = 20;
/** The maximum difference between the log and *no retries*, as a share of the requests. */
const MAX_REFUSED_DIFFERENCE = 0.02;

/** @param known the parts of the limit given by options instead of inferred from the log */
export function formatInferredLimit(
  { upstream, inferred, surveyed, stage, rows }: FitResult,
  known: KnownLimit,
): string[] {
  if (upstream === undefined) return [];
  const lines = [formatUpstream(upstream, surveyed)];
  if (upstream.limit.kind === 'unlimited') {
    lines.push('no limit: the upstream refused nothing in this log, so --limit has to say it');
  } else if (inferred === undefined) {
    lines.push('nothing was sent in this log: the limit is as told, and a burst that is not is assumed');
  } else {
    lines.push(...formatBucketFit(inferred, known));
  }
  const once = rows.find(({ policy }) => policy === NO_RETRIES);
  // Requests behind a proxy were not sent once, at arrival: there is nothing to compare.
  if (stage === 'played' && once !== undefined && surveyed.refusedHere === 0 && surveyed.answers.unclear === 0) {
    const [met, meets] = [surveyed.refused / surveyed.requests, once.refused / once.requests];
    const agree = (inferred?.off ?? 0) > MAX_DEVIATION ? 'as many, but others' : 'they agree';
    const verdict =
      Math.abs(met - meets) <= MAX_REFUSED_DIFFERENCE ? agree : 'the limit is another, and so is all that follows';
    lines.push(`refused of the log ${formatShare(met)}, of '${NO_RETRIES}' ${formatShare(meets)}: ${verdict}`);
  }
  return lines;
}

function formatUpstream({ limit, errors = [] }: UpstreamSpec, { service }: LogSummary): string {
  const limits =
    limit.kind === 'token-bucket' ? `a token bucket of ${formatRate(limit.rate)}, burst ${limit.burst}` : 'no limit';
  const [error] = errors;
  const fails = error === undefined ? '' : `, ${(100 * error.probability).toFixed(2)} % errors`;
  const takes =
    service === undefined
      ? "100ms a request, as the log does not tell, so p50 and p99 are not the log's"
      : `${formatDelay(service.p50)} a request, p99 ${formatDelay(service.p99)}`;
  return `played to ${limits}; ${takes}${fails}`;
}

function formatBucketFit(inferred: InferredBucket, known: KnownLimit): string[] {
  const { attempts, refused, wouldRefuse, off, span, burstIs } = inferred;
  const lines = [
    `${formatLimitSource(known)}: of ${attempts} attempts looked at ${refused} were refused, and such a bucket refuses ${wouldRefuse}; ` +
      `in spans of ${formatDelay(Number(span.toPrecision(2)))} what it lets through differs by ${formatPercent(off)}`,
  ];
  if (off > MAX_DEVIATION) {
    lines.push(
      'a token bucket does not answer like this log: is it a window, several limits, or one that has changed?',
    );
  }
  if (known.rate === undefined && refused < MIN_REFUSALS) {
    lines.push('so few refusals make it a guess: --limit and --burst say otherwise');
  } else if (known.burst === undefined && burstIs === 'least') {
    lines.push(
      'the burst may be larger: the log does not show what is let through after a long rest; --burst says otherwise',
    );
  }
  return lines;
}

function formatLimitSource({ rate, burst }: KnownLimit): string {
  if (rate === undefined) return burst === undefined ? 'rate and burst from the log' : 'the rate from the log';
  return burst === undefined ? 'the burst from the log' : 'as told';
}

function formatShare(part: number): string {
  return `${(100 * part).toFixed(1)} %`;
}
