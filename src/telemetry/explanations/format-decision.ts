/** Texts about decisions of the gate, with their numbers. */
import type { LimitView } from '../../core/events/gate-views.ts';
import { FLOOD_FACTOR } from '../../core/admission/client-allowance.ts';
import type { DecisionDetails } from '../../core/admission/decision-details.ts';
import { formatLimitRef } from '../../core/limits/limit-ref.ts';
import type { LatencyLimit } from '../../core/rate/in-flight-limiter.ts';
import type { BlockStatus } from '../../core/rate/breaker/active-block.ts';
import { MAX_LEARNED_RETRY_AFTER } from '../../core/limits/return-slots.ts';
import { classifyBlockedPart } from '../../core/rate/breaker/request-attributes.ts';
import type { Millis, PerSecond } from '../../core/scalars.ts';
import type { RefusalReason, ReturnSlotKind } from '../../core/admission/gate-decision.ts';
import type { TraceStep } from '../../core/exchange/exchange-observer.ts';
import { formatSpentQuota } from './format-spent-quota.ts';
import {
  pluralize,
  roundOrNull,
  humanizeDuration,
  formatBlockedPart,
  humanizeRate,
  toSeconds,
} from '../format-values.ts';

type DecidedStep = Extract<TraceStep, { readonly what: 'decided' }>;
type DequeuedStep = Extract<TraceStep, { readonly what: 'dequeued' }>;

/**
 * `queued: …`, `refused (over_share): …`.
 * @param origin of the clock of exchanges, in milliseconds of the epoch
 */
export function formatDecision(
  { decision, why, retryAfterMs, isObserved, details }: DecidedStep,
  origin: Millis,
): string {
  const observedNote = isObserved ? ' (observe mode: it was sent anyway)' : '';
  if (decision === 'queued') {
    const { estimatedWait, maxWait, clientTimeout } = details;
    const estimateText = estimatedWait === undefined ? '' : `; estimated wait ${humanizeDuration(estimatedWait)}`;
    const maxWaitText =
      maxWait === undefined ? '' : `, maximum wait ${humanizeDuration(maxWait)}${formatClientTimeout(clientTimeout)}`;
    return `queued${observedNote}: ${[...formatLimitParts(details, origin), ...formatClientParts(details)].join(', ')}${estimateText}${maxWaitText}`;
  }
  return `refused (${why})${observedNote}: ${formatRefusal(why, details, origin)}${formatComeBack(retryAfterMs, details)}`;
}

/** @param origin as above */
export function formatDequeue({ waited, why, retryAfterMs, details }: DequeuedStep, origin: Millis): string {
  if (why === undefined) return `admitted after ${humanizeDuration(waited)} in the queue`;
  const reason = details === undefined ? '' : `: ${formatRefusal(why, details, origin)}`;
  return `refused (${why}) after ${humanizeDuration(waited)} in the queue${reason}${formatComeBack(retryAfterMs, details)}`;
}

/** Why a request was rejected, as part of a sentence. @param origin as above */
export function formatRefusalReason(
  why: RefusalReason | undefined,
  { estimatedWait, maxWait, clientTimeout, heldFor, limit, block, quota, account }: DecisionDetails,
  origin: Millis,
): string | undefined {
  switch (why) {
    case 'over_share':
      if (estimatedWait === undefined || maxWait === undefined) return undefined;
      return `it would have waited ${humanizeDuration(estimatedWait)}, longer than the maximum of ${humanizeDuration(maxWait)}${formatClientTimeout(clientTimeout)}`;
    case 'queue_timeout':
      return estimatedWait === undefined
        ? undefined
        : `it would have waited another ${humanizeDuration(estimatedWait)}${formatClientTimeout(clientTimeout)}`;
    case 'held':
      return `the upstream asked this client to wait ${humanizeDuration(heldFor > 0 ? heldFor : (estimatedWait ?? 0))}`;
    case 'quota_exceeded':
    case 'client_quota_exceeded':
      return quota === undefined ? undefined : formatSpentQuota(quota);
    case 'blocked':
      return formatQuarantine(account) ?? formatBlock(limit, block, origin);
    case 'queue_full':
      return limit === undefined
        ? 'the queue is full'
        : `the queue is full with ${pluralize(limit.queued, 'request', 'requests')}`;
    case 'draining':
      return 'the proxy is shutting down';
    case undefined:
      return undefined;
  }
}

/** For programs. */
export function decisionFields(details: DecisionDetails): Record<string, unknown> {
  const { limit, block, estimatedWait, maxWait } = details;
  const isBlocked = block !== undefined || limit?.state === 'blocked';
  return {
    ...(limit === undefined || limit.nested === '' ? {} : { limit: formatLimitRef(limit) }),
    ...(details.account === undefined ? {} : { account: details.account.name }),
    state: limit?.state ?? null,
    blockedBy: limit?.isBlockedByOperator === true ? 'operator' : isBlocked ? 'upstream' : null,
    blockedCause: block?.cause ?? null,
    blockedPart: block === undefined ? null : classifyBlockedPart(block.scope),
    pinnedPerSecond: roundOrNull(details.pinnedRate),
    ratePerSecond: roundOrNull(limit?.rate),
    ceilingPerSecond: roundOrNull(limit?.ceiling),
    places: limit?.concurrencyLimit ?? null,
    placesCause: placesCauseOf(limit) ?? null,
    unanswered: limit === undefined ? null : (latencyLimitOf(limit)?.unanswered ?? null),
    queued: limit?.queued ?? null,
    inFlight: limit?.inFlight ?? null,
    quotaLeft: roundOrNull(limit?.quotaLeft),
    ...(details.quota === undefined ? {} : { spentQuota: details.quota.name }),
    estimateSeconds: secondsOrNull(estimatedWait),
    patienceSeconds: secondsOrNull(maxWait),
    clientTimeoutSeconds: secondsOrNull(details.clientTimeout),
    demandPerSecond: roundOrNull(details.demand),
    sharePerSecond: roundOrNull(details.share),
    allowance: roundOrNull(details.allowance),
    queuedOfClient: details.clientBacklog,
    heldForSeconds: toSeconds(details.heldFor),
    returnSlot: details.returnSlot ?? null,
  };
}

function formatQuarantine(account: DecisionDetails['account']): string | undefined {
  if (account === undefined || account.quarantinedFor === 0) return undefined;
  const { name, quarantinedFor } = account;
  return `the upstream rejects the credential of account ${name} for requests of this client, and no other may be used; its next probe is in ${humanizeDuration(quarantinedFor)}`;
}

/** What has shown how many requests may be in flight; undefined if that is not limited. */
function placesCauseOf(limit: LimitView | undefined): 'rejections' | 'latency' | 'latency_test' | undefined {
  if (limit?.concurrencyLimit === undefined) return undefined;
  const latencyLimit = latencyLimitOf(limit);
  if (latencyLimit === undefined) return 'rejections';
  return latencyLimit.isTest ? 'latency_test' : 'latency';
}

/** The limit that latency has shown, if it is the one in force. */
function latencyLimitOf({ concurrencyLimit, latencyLimit }: LimitView): LatencyLimit | undefined {
  return latencyLimit?.size === concurrencyLimit ? latencyLimit : undefined;
}

/** Why a wait may not be longer, in parentheses; empty if the reason is no timeout of the client. */
function formatClientTimeout(clientTimeout: Millis | undefined): string {
  return clientTimeout === undefined ? '' : ` (this client disconnects after ${humanizeDuration(clientTimeout)})`;
}

export function secondsOrNull(ms: Millis | undefined): number | null {
  return ms === undefined || !Number.isFinite(ms) ? null : toSeconds(ms);
}

function formatRefusal(why: RefusalReason | undefined, details: DecisionDetails, origin: Millis): string {
  const because = formatRefusalReason(why, details, origin);
  if (why === 'held') return because ?? '';
  const place = formatLimitParts(details, origin).filter((part) => part !== because);
  return [...(because === undefined ? [] : [because]), ...place, ...formatClientParts(details)].join(', ');
}

/**
 * A block by an operator has an end or none. A block by the upstream ends with a probe; a Retry-After of it while pinned has an
 * end.
 */
function formatBlock(limit: LimitView | undefined, block: BlockStatus | undefined, origin: Millis): string {
  const { isBlockedByOperator, isProbed, pinnedRate, blockedUntil } = limit ?? {};
  const until = blockedUntil === undefined ? undefined : new Date(origin + blockedUntil).toISOString();
  if (isBlockedByOperator === true) return `an operator has blocked it until ${until ?? 'it is unblocked'}`;
  if (pinnedRate !== undefined && isProbed !== true && until !== undefined) {
    return `the upstream asked for no requests until ${until}`;
  }
  const part = block === undefined ? 'upstream' : classifyBlockedPart(block.scope);
  const of = part === 'upstream' ? '' : ` for ${formatBlockedPart(part, 'this')}`;
  return `the upstream is blocked${of}: only probes are sent`;
}

function formatLimitParts(
  { limit, block, pinnedRate, waitsForConnection, leavesConnections, leavesPlaces }: DecisionDetails,
  origin: Millis,
): string[] {
  if (waitsForConnection && leavesConnections === true) return [LEAVES_CONNECTIONS];
  if (waitsForConnection) return ['all connections to the upstream are in use'];
  if (limit === undefined) return [];
  const { queued, inFlight, concurrencyLimit, quotaLeft } = limit;
  const latencyLimit = latencyLimitOf(limit);
  const parts = [
    limit.isBlockedByOperator === true ? formatBlock(limit, block, origin) : formatPace(limit, pinnedRate),
  ];
  if (latencyLimit !== undefined) {
    const { size, unanswered, isTest } = latencyLimit;
    const reason = isTest ? 'to see whether more would' : 'because more would';
    parts.push(`${unanswered} of at most ${size} requests wait for a response, ${reason} only be answered later`);
  } else if (concurrencyLimit !== undefined) {
    parts.push(`${inFlight} of at most ${concurrencyLimit} requests are in flight`);
  }
  if (leavesPlaces === true) parts.push(LEAVES_PLACES);
  if (quotaLeft !== undefined) parts.push(`${Math.round(100 * quotaLeft)} % of the quota is left`);
  if (queued > 0) parts.push(pluralize(queued, 'request is queued', 'requests are queued'));
  return parts;
}

function formatPace(limit: LimitView, pinned: PerSecond | undefined): string {
  const { rate, state } = limit;
  const name = formatLimitRef(limit);
  if (pinned !== undefined) return `an operator pinned the rate at ${humanizeRate(pinned)}`;
  return Number.isFinite(rate)
    ? `the limit${name === '' ? '' : ` ${name}`} allows ${humanizeRate(rate)} (${state})`
    : `no limit is known (${state})`;
}

function formatClientParts({ demand, share, allowance, clientBacklog }: DecisionDetails): string[] {
  const parts: string[] = [];
  if (clientBacklog > 0) parts.push(`${clientBacklog} of them from this client`);
  parts.push(
    `the client’s demand is ${humanizeRate(demand)}${share === undefined ? '' : `, its share ${humanizeRate(share)}`}`,
  );
  if (allowance < 1) parts.push(`its allowance is ${Number(allowance.toPrecision(2))}`);
  return parts;
}

function formatComeBack(retryAfter: Millis | undefined, details: DecisionDetails | undefined): string {
  if (retryAfter === undefined) return '';
  const slot = details === undefined ? undefined : formatReturnSlot(retryAfter, details);
  return `; Retry-After: ${humanizeDuration(retryAfter)}${slot === undefined ? '' : `, ${slot}`}`;
}

/** Less is explained by the interval between two tokens, and by rounding to whole seconds. */
const NOTABLE_RETURN_DELAY: Millis = 1000;

/** Why a Retry-After is much later than the turn of the request, as part of a sentence; undefined if it is not. */
export function formatReturnSlot(
  retryAfter: Millis,
  { estimatedWait = 0, returnSlot }: DecisionDetails,
): string | undefined {
  const later = retryAfter - estimatedWait;
  if (returnSlot === undefined || later < NOTABLE_RETURN_DELAY) return undefined;
  const atMost = later < MAX_LEARNED_RETRY_AFTER ? '' : ' (the maximum)';
  return `${humanizeDuration(later)}${atMost} after its turn, because ${RETURN_SLOT_TEXTS[returnSlot]}`;
}

const LEAVES_CONNECTIONS =
  'this client, or its address, has most of the connections to the upstream, and leaves the free ones to others';

const LEAVES_PLACES =
  'this client, or its address, has more than its share of these, and leaves the free places to others';

const RETURN_SLOT_TEXTS: Readonly<Record<ReturnSlotKind, string>> = {
  shared: 'refused requests get return times one after another, at the rate in force',
  own: `this client, or its address, asks for more than ${FLOOD_FACTOR} times its share: its refused requests get return times one after another, at its share of the rate`,
  yielding:
    'this client, or its address, has most of the connections, or of the places in flight, and leaves the free ones to others: its refused requests get return times one after another, as fast as it releases its own',
  after_own:
    'this client, or others at its address, already have return times: those after that follow one another as fast as other addresses allow',
  stalled: 'no connection has become free for that long',
};
