/** The kind of limit that a log shows, and how sure that is. */
import { formatDuration, formatRate } from '../../../config/values/unit-schemas.ts';
import type { LimitModelSpec } from '../../../simulator/limit-models/limit-model-spec.ts';
import { formatDelay } from '../../../cli/format-delay.ts';
import { pluralize } from '../../../telemetry/format-values.ts';
import type { IdentifiedLimit } from '../limits/identify-limit.ts';
import type { FittedLimit } from '../limits/limit-fit.ts';
import type { RankedLimit, ServiceKind } from '../limits/limit-verdict.ts';
import { SURE_MARGIN } from '../limits/limit-verdict.ts';
import type { ServiceFit } from '../limits/service-fit.ts';

export function formatIdentifiedLimit(identified: IdentifiedLimit): string[] {
  const { confidence, kind, margin, ranking, hasTimes } = identified;
  if (kind === 'queue' || kind === 'sharing') {
    const service = identified[kind];
    if (service !== undefined && confidence === 'sure') return [formatService(kind, service)];
    if (service !== undefined && confidence === 'unsure') return [formatUnsureService(kind, service, margin)];
  }
  // The others predict no better than chance.
  const tried = ranking
    .slice(
      0,
      ranking.findIndex(({ limit }) => limit.kind === 'none'),
    )
    .map(formatPredictions);
  return [
    ...(tried.length === 0 ? [] : [`kinds, the likeliest first: ${tried.join('; ')}`]),
    formatVerdict(identified),
    ...(hasTimes ? [] : ['a limit on requests in flight was not tried, because the log has no durations']),
  ];
}

function formatPredictions({ limit, predicted, wrong }: RankedLimit): string {
  return `${formatLimit(limit)} (${predicted - wrong} of ${predicted} responses predicted)`;
}

function formatVerdict({ confidence, kind, margin = 0, missing, ranking, passed, refused }: IdentifiedLimit): string {
  const [best, next] = ranking;
  if (best === undefined) return 'no kind of limit was tried';
  const than = next === undefined ? 'no limit' : nameKind(next.limit);
  const nats = `${Number(margin.toPrecision(2))} nats`;
  switch (confidence) {
    case 'few':
      return `not enough responses to tell the kind: ${pluralize(Math.min(passed, refused), refused <= passed ? 'rejection' : 'accepted request', refused <= passed ? 'rejections' : 'accepted requests')}; ${formatMissing(missing, passed, refused)}`;
    case 'coarse':
      return `the times of the log are whole seconds, too coarse to tell the kind: log milliseconds ($msec in nginx); the nearest is ${nameKind(best.limit)}`;
    case 'unsure':
      return `${nameKind(best.limit)} or ${than}: the log is only ${nats} likelier with the first; record more, under traffic that varies`;
    case 'partly':
      return `${nameKind(best.limit)} is the nearest kind, but predicts only ${formatRight(best)}: perhaps several limits, or a limit that changed`;
    case 'sure':
      return kind === 'none'
        ? 'no kind explains the rejections better than chance: perhaps they depend on the client or on the path'
        : `the limit is ${nameKind(best.limit)}: it predicts ${formatRight(best)} of the responses, and the log is ${nats} likelier than with ${than}`;
  }
}

function formatMissing(missing: number, passed: number, refused: number): string {
  const rare = Math.max(1, Math.min(passed, refused));
  const requests = Math.ceil((missing * (passed + refused)) / rare);
  return `record ${missing} more, which takes about ${requests} more requests of this traffic`;
}

/** Not rounded up to 100 %. */
function formatRight({ predicted, wrong }: RankedLimit): string {
  const share = predicted === 0 ? 0 : (predicted - wrong) / predicted;
  return `${(Math.floor(1000 * share) / 10).toFixed(1)} %`;
}

function formatService(kind: ServiceKind, fit: ServiceFit): string {
  const { workers, service, mean, waited, examined, margin } = fit;
  const rate = formatRate(Number(((1000 * workers) / mean).toPrecision(3)));
  const count = pluralize(workers, 'worker', 'workers');
  const [found, affected] =
    kind === 'queue'
      ? [`a queue: ${count}`, 'waited']
      : [`a service that works on all requests at once: ${count}`, 'shared workers'];
  return (
    `no limit, but ${found} of ${formatDelay(service)} a request, so at most ${rate}; ` +
    `${waited} of ${examined} requests ${affected}, and the log is ${Number(margin.toPrecision(2))} nats likelier than without a queue`
  );
}

function formatUnsureService(kind: ServiceKind, { fewest, most }: ServiceFit, margin = 0): string {
  const [queue, sharing] = ['a queue', 'a service that works on all requests at once'];
  const [found, other] = kind === 'queue' ? [queue, sharing] : [sharing, queue];
  if (margin < SURE_MARGIN) {
    const nats = `${Number(margin.toPrecision(2))} nats`;
    return `no limit, but ${found} or ${other}: the log is only ${nats} likelier with the first; record more, under traffic that varies`;
  }
  const range = fewest === most ? `${fewest} or another number` : `${fewest} to ${most}`;
  return `no limit, but ${found}: the log does not show how many workers it has (${range}); record more, also while it is not busy`;
}

function nameKind({ kind }: FittedLimit): string {
  switch (kind) {
    case 'token-bucket':
      return 'a token bucket';
    case 'fixed-window':
      return 'a fixed window';
    case 'sliding-window':
      return 'a sliding window';
    case 'concurrency':
      return 'a limit on requests in flight';
    case 'none':
      return 'no limit';
  }
}

/** A limit with its numbers. */
export function formatLimit(limit: LimitModelSpec | FittedLimit): string {
  switch (limit.kind) {
    case 'token-bucket':
      return `a token bucket of ${formatRate(limit.rate)}, burst ${limit.burst}`;
    case 'fixed-window':
      return `a fixed window of ${limit.limit} in each ${formatLength(limit.window)}`;
    case 'sliding-window':
      return `a sliding window of ${limit.limit} in any ${formatLength(limit.window)}`;
    case 'concurrency':
      return `a limit of ${limit.limit} in flight`;
    default:
      return 'no limit';
  }
}

function formatLength(window: number): string {
  return window < 1000 ? formatDelay(window) : formatDuration(Math.round(window / 100) * 100);
}
