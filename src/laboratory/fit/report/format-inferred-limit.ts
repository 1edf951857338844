/** Which upstream the log is played to, and why it is thought to be like the one that the log met. */
import { writeRate } from '../../../config/values/unit-schemas.ts';
import { NO_RETRIES } from '../direct-clients.ts';
import type { Fitted } from '../fit-experiment.ts';
import type { Inferred, KnownLimit } from '../infer-bucket.ts';
import type { Surveyed } from '../log-survey.ts';
import type { UpstreamSpec } from '../../../simulator/upstream/upstream-model.ts';
import { formatDelay } from '../../../cli/format-delay.ts';
import { percent } from './format-percent.ts';

/** Of what passed: a token bucket is found with less, a window of a minute with half of it. */
const UNLIKE = 0.1;
/** Refusals from which nothing can be told. */
const FEW = 20;
/** A part of the requests: how far the log and *no retries* may be apart. */
const APART = 0.02;

/** @param known of the limit, what was told and is not taken from the log */
export function tellLimit({ upstream, inferred, surveyed, stage, rows }: Fitted, known: KnownLimit): string[] {
  if (upstream === undefined) return [];
  const lines = [tellUpstream(upstream, surveyed)];
  if (upstream.limit.kind === 'unlimited') {
    lines.push('no limit: the upstream refused nothing in this log, so --limit has to say it');
  } else if (inferred === undefined) {
    lines.push('nothing was sent in this log: the limit is as told, and a burst that is not is assumed');
  } else {
    lines.push(...tellInferred(inferred, known));
  }
  const once = rows.find(({ policy }) => policy === NO_RETRIES);
  // What went through a proxy was not sent once, at its time.
  if (stage === 'played' && once !== undefined && surveyed.refusedHere === 0 && surveyed.answers.unclear === 0) {
    const [met, meets] = [surveyed.refused / surveyed.requests, once.refused / once.requests];
    const agree = (inferred?.off ?? 0) > UNLIKE ? 'as many, but others' : 'they agree';
    const verdict = Math.abs(met - meets) <= APART ? agree : 'the limit is another, and so is all that follows';
    lines.push(`refused of the log ${share(met)}, of '${NO_RETRIES}' ${share(meets)}: ${verdict}`);
  }
  return lines;
}

function tellUpstream({ limit, errors = [] }: UpstreamSpec, { service }: Surveyed): string {
  const limits =
    limit.kind === 'token-bucket' ? `a token bucket of ${writeRate(limit.rate)}, burst ${limit.burst}` : 'no limit';
  const [error] = errors;
  const fails = error === undefined ? '' : `, ${(100 * error.probability).toFixed(2)} % errors`;
  const takes =
    service === undefined
      ? "100ms a request, as the log does not tell, so p50 and p99 are not the log's"
      : `${formatDelay(service.p50)} a request, p99 ${formatDelay(service.p99)}`;
  return `played to ${limits}; ${takes}${fails}`;
}

function tellInferred(inferred: Inferred, known: KnownLimit): string[] {
  const { attempts, refused, wouldRefuse, off, span, burstIs } = inferred;
  const lines = [
    `${tellSource(known)}: of ${attempts} attempts looked at ${refused} were refused, and such a bucket refuses ${wouldRefuse}; ` +
      `in spans of ${formatDelay(Number(span.toPrecision(2)))} what it lets through differs by ${percent(off)}`,
  ];
  if (off > UNLIKE) {
    lines.push(
      'a token bucket does not answer like this log: is it a window, several limits, or one that has changed?',
    );
  }
  if (known.rate === undefined && refused < FEW) {
    lines.push('so few refusals make it a guess: --limit and --burst say otherwise');
  } else if (known.burst === undefined && burstIs === 'least') {
    lines.push(
      'the burst may be larger: the log does not show what is let through after a long rest; --burst says otherwise',
    );
  }
  return lines;
}

function tellSource({ rate, burst }: KnownLimit): string {
  if (rate === undefined) return burst === undefined ? 'rate and burst from the log' : 'the rate from the log';
  return burst === undefined ? 'the burst from the log' : 'as told';
}

function share(part: number): string {
  return `${(100 * part).toFixed(1)} %`;
}
