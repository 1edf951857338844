import { hintedDelay } from '../retry/choose-retry.ts';
import type { BackOff, Hints, Millis, Outcome, Random } from '../exchange/attempt-outcome.ts';

/** When a resource that is not ready is asked for again, on behalf of clients that say how long they would wait. */
export interface PollPolicy {
  /** What says "not ready": 202, or whatever else the upstream says it by. */
  readonly notReady: ReadonlySet<number>;
  readonly backOff: BackOff;
  /** The longest that is waited for one request. */
  readonly maxWait: Millis;
  /** How often it is asked for one request, ≥ 1; the first time included. */
  readonly maxPolls: number;
  /** Requests of a route that are waited for at a time, ≥ 0. */
  readonly maxWaiting: number;
}

/** Another poll that is worth waiting for. */
export interface Poll {
  /** Until it begins. */
  readonly delay: Millis;
  /** `end`: it is the last one, put at the end of the wait. `refusal`: the poll before was turned away, and told when to come. */
  readonly source: 'backoff' | 'hint' | 'end' | 'refusal';
  /** Not sooner than this: somebody has asked for it. 0 where nobody has. */
  readonly asked: Millis;
  /** To be handed back at the next one. */
  readonly memory: number;
}

export interface PollsSoFar {
  /** Made so far, ≥ 1: the request as it came is the first. */
  readonly polls: number;
  /** What is left of the wait; negative when it is over. */
  readonly left: Millis;
  /** How long the last one took, its queueing and its retries included: the last of all begins so long before the end. */
  readonly took: Millis;
  readonly memory: number;
}

/** No two polls are nearer to each other, whatever the back-off says. */
export const LEAST_DELAY: Millis = 100;
/** With less left than so much more than the delay, the poll is put off to the end: two in close succession tell no more. */
const STRETCH = 1.5;
/** With less left than this part of the delay, what is in hand is as good as what another poll would bring. */
const FRESH = 0.25;

export function isNotReady({ notReady }: PollPolicy, outcome: Outcome): outcome is Outcome & { kind: 'response' } {
  return outcome.kind === 'response' && notReady.has(outcome.status);
}

/**
 * Whether to ask again for what is not ready, and after how long. Delays grow as the back-off has it; the last poll
 * is put at the end of the wait, so that its answer is what the client gets. Never sooner than the upstream asks for:
 * if that is beyond the end, or if it asks for no other at all, there is none. Draws from `random` as the back-off does, and once where there is a hint.
 * @returns undefined when the answer in hand is the last word
 */
export function choosePoll(
  policy: PollPolicy,
  hints: Hints,
  { polls, left, took, memory }: PollsSoFar,
  random: Random,
): Poll | undefined {
  const room = left - took;
  if (polls >= policy.maxPolls || room < LEAST_DELAY || hints.verdict === 'never') return undefined;
  const step = policy.backOff.next(polls - 1, memory, random);
  if (step === undefined) return undefined;
  const hinted = hintedDelay(hints);
  if (hinted !== undefined && hinted > room) return undefined;
  const own = Math.max(LEAST_DELAY, step.delay);
  const floor = hinted === undefined ? 0 : hinted + random() * Math.min(hinted / 10, 1000);
  const delay = Math.max(own, floor);
  const isLast = polls + 1 >= policy.maxPolls || room < STRETCH * delay;
  if (!isLast) return { delay, source: floor > own ? 'hint' : 'backoff', asked: hinted ?? 0, memory: step.memory };
  return room < FRESH * delay ? undefined : { delay: room, source: 'end', asked: hinted ?? 0, memory: step.memory };
}

/**
 * A poll that was turned away comes back when it was told to, as its client would.
 * @returns undefined where that is beyond the wait
 */
export function putOffPoll(retryAfter: Millis, left: Millis, memory: number): Poll | undefined {
  const delay = Math.max(1000, retryAfter); // less could not be told
  return delay < left ? { delay, source: 'refusal', asked: delay, memory } : undefined;
}
