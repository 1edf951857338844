/** The upstream that the log is replayed to, and the evidence for it. */
import { formatIdentifiedLimit, formatLimit } from './format-identified-limit.ts';
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

const UNKNOWN_DELAY =
  'latency may depend on the number of requests in flight, but the log shows neither a queue nor a service that works on all ' +
  'requests at once: record more, from before the load begins';

/** @param known the parts of the limit given by options instead of inferred from the log */
export function formatInferredLimit(
  { upstream, inferred, identified, surveyed, stage, rows }: FitResult,
  known: KnownLimit,
): string[] {
  if (upstream === undefined) return [];
  const lines = [formatUpstream(upstream, surveyed)];
  if (identified?.kind === 'queue' || identified?.kind === 'sharing') {
    lines.push(...formatIdentifiedLimit(identified));
  } else if (upstream.limit.kind === 'unlimited') {
    lines.push('no limit: the upstream rejected nothing in this log; set --limit');
    if (identified?.confidence === 'unsure') lines.push(UNKNOWN_DELAY);
  } else if (inferred === undefined) {
    lines.push('nothing was sent in this log: the limit is --limit, with an assumed burst unless --burst is set');
  } else {
    lines.push(...formatBucketFit(inferred, known, upstream.limit.kind === 'token-bucket'));
    if (identified !== undefined) lines.push(...formatIdentifiedLimit(identified));
  }
  const once = rows.find(({ policy }) => policy === NO_RETRIES);
  // Requests behind a proxy were not sent once, at arrival: there is nothing to compare.
  if (stage === 'played' && once !== undefined && surveyed.refusedHere === 0 && surveyed.answers.unclear === 0) {
    const [met, meets] = [surveyed.refused / surveyed.requests, once.refused / once.requests];
    const agree =
      upstream.limit.kind === 'token-bucket' && (inferred?.off ?? 0) > MAX_DEVIATION
        ? 'the counts agree, but other requests are refused'
        : 'they agree';
    const verdict =
      Math.abs(met - meets) <= allowedDifference(upstream, surveyed) ? agree : 'the limit is wrong, and so is the rest';
    lines.push(`share refused: ${formatShare(met)} in the log, ${formatShare(meets)} in '${NO_RETRIES}'; ${verdict}`);
  }
  return lines;
}

/** The log begins and ends within a window: the replay may differ by a window. */
function allowedDifference({ limit }: UpstreamSpec, { requests }: LogSummary): number {
  return MAX_REFUSED_DIFFERENCE + ('window' in limit ? limit.limit / requests : 0);
}

function formatUpstream({ limit, errors = [] }: UpstreamSpec, { service }: LogSummary): string {
  const [error] = errors;
  const fails = error === undefined ? '' : `, ${(100 * error.probability).toFixed(2)} % errors`;
  const takes =
    service === undefined
      ? '100ms a request is assumed, because the log has no times: compare p50 and p99 only below'
      : `${formatDelay(service.p50)} a request, p99 ${formatDelay(service.p99)}`;
  return `replayed to ${formatLimit(limit)}; ${takes}${fails}`;
}

/** @param isBucket false if the limit is known to be of another kind */
function formatBucketFit(inferred: InferredBucket, known: KnownLimit, isBucket: boolean): string[] {
  const { attempts, refused, wouldRefuse, off, span, burstIs } = inferred;
  const lines = [
    `${formatLimitSource(known)}: of ${attempts} attempts examined, the upstream rejected ${refused} and such a bucket rejects ${wouldRefuse}; ` +
      `in spans of ${formatDelay(Number(span.toPrecision(2)))} the accepted attempts differ by ${formatPercent(off)}`,
  ];
  if (off > MAX_DEVIATION) {
    lines.push(
      'a token bucket does not explain this log: perhaps it is a window, several limits, or a limit that changed',
    );
  }
  if (known.rate === undefined && refused < MIN_REFUSALS) {
    lines.push('so few rejections make this a guess: set --limit and --burst if you know them');
  } else if (known.burst === undefined && burstIs === 'least' && isBucket) {
    lines.push('the burst may be larger: the log shows no request after a long pause; set --burst if you know it');
  }
  return lines;
}

function formatLimitSource({ rate, burst }: KnownLimit): string {
  if (rate === undefined) return burst === undefined ? 'rate and burst from the log' : 'the rate from the log';
  return burst === undefined ? 'the burst from the log' : 'limit and burst as set';
}

function formatShare(part: number): string {
  return `${(100 * part).toFixed(1)} %`;
}
