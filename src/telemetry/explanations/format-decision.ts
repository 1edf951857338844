/** What the gate decided, and the numbers that it had for it. */
import type { LimitView } from '../../core/events/proxy-events.ts';
import type { Grounds } from '../../core/admission/decision-details.ts';
import { tellLimit } from '../../core/limits/limit-ref.ts';
import type { Block } from '../../core/rate/breaker/active-block.ts';
import { partOf } from '../../core/rate/breaker/request-attributes.ts';
import type { Millis, PerSecond, Refusal } from '../../core/exchange/attempt-outcome.ts';
import type { Step } from '../../core/exchange/exchange-observer.ts';
import { count, orNull, tellDuration, tellPart, tellRate, toSeconds } from './format-values.ts';

type Decided = Extract<Step, { readonly what: 'decided' }>;
type Dequeued = Extract<Step, { readonly what: 'dequeued' }>;

/**
 * `queued: …`, `refused (over_share): …`.
 * @param origin milliseconds of the epoch at the origin of the clock that exchanges run by
 */
export function tellDecided({ decision, why, retryAfter, isObserved, grounds }: Decided, origin: Millis): string {
  const would = isObserved ? ' (observed: it was sent all the same)' : '';
  if (decision === 'queued') {
    const { estimate, patience } = grounds;
    const turn = estimate === undefined ? '' : `; its turn is reckoned in ${tellDuration(estimate)}`;
    const may = patience === undefined ? '' : `, and it may wait ${tellDuration(patience)}`;
    return `queued${would}: ${sentence([...placeOf(grounds, origin), ...clientOf(grounds)])}${turn}${may}`;
  }
  return `refused (${why})${would}: ${tellRefused(why, grounds, origin)}${tellBack(retryAfter)}`;
}

/** @param origin as above */
export function tellDequeued({ waited, why, retryAfter, grounds }: Dequeued, origin: Millis): string {
  if (why === undefined) return `its turn came after ${tellDuration(waited)} in the queue`;
  const reason = grounds === undefined ? '' : `: ${tellRefused(why, grounds, origin)}`;
  return `refused (${why}) after ${tellDuration(waited)} in the queue${reason}${tellBack(retryAfter)}`;
}

/** Why it was not let go, in half a sentence. @param origin as above */
export function becauseOf(
  why: Refusal | undefined,
  { estimate, patience, heldFor, limit, block }: Grounds,
  origin: Millis,
): string | undefined {
  switch (why) {
    case 'over_share':
      if (estimate === undefined || patience === undefined) return undefined;
      return `its turn would have been in ${tellDuration(estimate)} and it may wait ${tellDuration(patience)}`;
    case 'queue_timeout':
      return estimate === undefined ? undefined : `its turn was still ${tellDuration(estimate)} away`;
    case 'held':
      return `the upstream asked this client to stay away for ${tellDuration(heldFor > 0 ? heldFor : (estimate ?? 0))}`;
    case 'blocked':
      return tellBlocked(limit, block, origin);
    case 'queue_full':
      return limit === undefined
        ? 'as many wait as may'
        : `${count(limit.queued, 'request waits', 'requests wait')}, and no more may`;
    case 'draining':
      return 'this proxy goes away';
    case undefined:
      return undefined;
  }
}

/** For programs. */
export function numbersOf(grounds: Grounds): Record<string, unknown> {
  const { limit, block, estimate, patience } = grounds;
  const isBlocked = block !== undefined || limit?.state === 'blocked';
  return {
    ...(limit === undefined || limit.nested === '' ? {} : { limit: tellLimit(limit) }),
    state: limit?.state ?? null,
    blockedBy: limit?.isStopped === true ? 'operator' : isBlocked ? 'upstream' : null,
    blockedCause: block?.cause ?? null,
    blockedPart: block === undefined ? null : partOf(block.scope),
    pinnedPerSecond: orNull(grounds.pinned),
    ratePerSecond: orNull(limit?.rate),
    ceilingPerSecond: orNull(limit?.ceiling),
    places: limit?.places ?? null,
    queued: limit?.queued ?? null,
    inFlight: limit?.inFlight ?? null,
    quotaLeft: orNull(limit?.quotaLeft),
    estimateSeconds: secondsOrNull(estimate),
    patienceSeconds: secondsOrNull(patience),
    demandPerSecond: orNull(grounds.demand),
    sharePerSecond: orNull(grounds.share),
    allowance: orNull(grounds.allowance),
    queuedOfClient: grounds.backlog,
    heldForSeconds: toSeconds(grounds.heldFor),
  };
}

export function secondsOrNull(ms: Millis | undefined): number | null {
  return ms === undefined || !Number.isFinite(ms) ? null : toSeconds(ms);
}

function tellRefused(why: Refusal | undefined, grounds: Grounds, origin: Millis): string {
  const because = becauseOf(why, grounds, origin);
  if (why === 'held') return because ?? '';
  const place = placeOf(grounds, origin).filter((part) => part !== because);
  return sentence([...(because === undefined ? [] : [because]), ...place, ...clientOf(grounds)]);
}

/** An operator's block has an end or none; the upstream's is found out by probes, but for what it asked for while pinned. */
function tellBlocked(limit: LimitView | undefined, block: Block | undefined, origin: Millis): string {
  const { isStopped, isProbed, pinned, blockedUntil } = limit ?? {};
  const until = blockedUntil === undefined ? undefined : new Date(origin + blockedUntil).toISOString();
  if (isStopped === true) return `an operator has blocked it until ${until ?? 'it is unblocked'}`;
  if (pinned !== undefined && isProbed !== true && until !== undefined) {
    return `the upstream asked that nothing be sent until ${until}`;
  }
  const part = block === undefined ? 'upstream' : partOf(block.scope);
  const of = part === 'upstream' ? '' : ` of ${tellPart(part, 'this')}`;
  return `the upstream lets nothing through${of} at present but a probe`;
}

function placeOf({ limit, block, pinned, forRoom }: Grounds, origin: Millis): string[] {
  if (forRoom) return ['all connections to the upstream are in use'];
  if (limit === undefined) return [];
  const { queued, inFlight, places, quotaLeft } = limit;
  const parts = [limit.isStopped === true ? tellBlocked(limit, block, origin) : tellPace(limit, pinned)];
  if (places !== undefined) parts.push(`${inFlight} of ${places} places are taken`);
  if (quotaLeft !== undefined) parts.push(`${Math.round(100 * quotaLeft)} % of the quota is left`);
  if (queued > 0) parts.push(count(queued, 'request waits', 'requests wait'));
  return parts;
}

function tellPace(limit: LimitView, pinned: PerSecond | undefined): string {
  const { rate, state } = limit;
  const name = tellLimit(limit);
  if (pinned !== undefined) return `the limit is pinned at ${tellRate(pinned)} by an operator`;
  return Number.isFinite(rate)
    ? `the limit${name === '' ? '' : ` ${name}`} lets ${tellRate(rate)} go (${state})`
    : `no rate is known (${state})`;
}

function clientOf({ demand, share, allowance, backlog }: Grounds): string[] {
  const parts: string[] = [];
  if (backlog > 0) parts.push(`${backlog} of this client’s`);
  parts.push(`it asks for ${tellRate(demand)}${share === undefined ? '' : `, and its share is ${tellRate(share)}`}`);
  if (allowance < 1) parts.push(`its allowance is ${Number(allowance.toPrecision(2))}`);
  return parts;
}

function tellBack(retryAfter: Millis | undefined): string {
  return retryAfter === undefined ? '' : `; told to come back in ${tellDuration(retryAfter)}`;
}

function sentence(parts: readonly string[]): string {
  return parts.join(', ');
}
