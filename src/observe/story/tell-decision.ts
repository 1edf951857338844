/** What the gate decided, and the numbers that it had for it. */
import type { Grounds } from '../../policy/grounds.ts';
import type { Millis, Refusal } from '../../policy/types.ts';
import type { Step } from '../../policy/watch.ts';
import { count, orNull, tellDuration, tellRate, toSeconds } from './words.ts';

type Decided = Extract<Step, { readonly what: 'decided' }>;
type Dequeued = Extract<Step, { readonly what: 'dequeued' }>;

/** `queued: …`, `refused (over_share): …`. */
export function tellDecided({ decision, why, retryAfter, isObserved, grounds }: Decided): string {
  const would = isObserved ? ' (observed: it was sent all the same)' : '';
  if (decision === 'queued') {
    const { estimate, patience } = grounds;
    const turn = estimate === undefined ? '' : `; its turn is reckoned in ${tellDuration(estimate)}`;
    const may = patience === undefined ? '' : `, and it may wait ${tellDuration(patience)}`;
    return `queued${would}: ${sentence([...placeOf(grounds), ...clientOf(grounds)])}${turn}${may}`;
  }
  return `refused (${why})${would}: ${tellRefused(why, grounds)}${tellBack(retryAfter)}`;
}

export function tellDequeued({ waited, why, retryAfter, grounds }: Dequeued): string {
  if (why === undefined) return `its turn came after ${tellDuration(waited)} in the queue`;
  const reason = grounds === undefined ? '' : `: ${tellRefused(why, grounds)}`;
  return `refused (${why}) after ${tellDuration(waited)} in the queue${reason}${tellBack(retryAfter)}`;
}

/** Why it was not let go, in half a sentence. */
export function becauseOf(
  why: Refusal | undefined,
  { estimate, patience, heldFor, limit }: Grounds,
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
      return 'the upstream lets nothing through at present but a probe';
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
  const { limit, estimate, patience } = grounds;
  return {
    state: limit?.state ?? null,
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

function tellRefused(why: Refusal | undefined, grounds: Grounds): string {
  const because = becauseOf(why, grounds);
  if (why === 'held') return because ?? '';
  return sentence([...(because === undefined ? [] : [because]), ...placeOf(grounds), ...clientOf(grounds)]);
}

function placeOf({ limit, forRoom }: Grounds): string[] {
  if (forRoom) return ['all connections to the upstream are in use'];
  if (limit === undefined) return [];
  const { rate, state, queued, inFlight, places, quotaLeft } = limit;
  const parts = [
    Number.isFinite(rate) ? `the limit lets ${tellRate(rate)} go (${state})` : `no rate is known (${state})`,
  ];
  if (places !== undefined) parts.push(`${inFlight} of ${places} places are taken`);
  if (quotaLeft !== undefined) parts.push(`${Math.round(100 * quotaLeft)} % of the quota is left`);
  if (queued > 0) parts.push(count(queued, 'request waits', 'requests wait'));
  return parts;
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
