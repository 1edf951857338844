import { hintedDelay, jitterAboveHint } from '../retry/hinted-delay.ts';
import type { BackOff } from '../backoff/back-off.ts';
import type { Hints } from '../hints/hints.ts';
import type { Millis, Random } from '../scalars.ts';
import type { AttemptOutcome } from '../exchange/attempt-outcome.ts';

/** When to request a result again that is not ready, for clients that say how long they would wait. */
export interface PollPolicy {
  /** The statuses that mean "not ready": 202, for example. */
  readonly notReady: ReadonlySet<number>;
  readonly backOff: BackOff;
  /** The longest wait of one request. */
  readonly maxWait: Millis;
  /** Polls of one request, ≥ 1; the request itself is the first. */
  readonly maxPolls: number;
  /** Requests of a route that may wait at a time, ≥ 0; those of one address take 8/9 of the places at most. */
  readonly maxWaiting: number;
}

/** Another poll that is worth waiting for. */
export interface PlannedPoll {
  readonly delay: Millis;
  /** `end`: the last poll, at the end of the wait. `refusal`: the last poll was refused, with a Retry-After. */
  readonly source: 'backoff' | 'hint' | 'end' | 'refusal';
  /** The delay that the upstream or the gate asked for; 0 if none. */
  readonly requestedDelay: Millis;
  /** The back-off's memory, for the next poll. */
  readonly memory: number;
}

export interface PollProgress {
  /** Made so far, ≥ 1: the request itself is the first. */
  readonly polls: number;
  /** Negative once the wait is over. */
  readonly waitLeft: Millis;
  /** How long the last poll took, with its queueing and retries: the final one begins that long before the end. */
  readonly lastPollTime: Millis;
  readonly memory: number;
}

/** The shortest time between two polls, whatever the back-off says. */
export const MIN_POLL_DELAY: Millis = 100;
/** With less time left than this multiple of the delay, the poll moves to the end: two in close succession bring nothing more. */
const FINAL_POLL_FACTOR = 1.5;
/** With less time left than this part of the delay, another poll brings nothing more than the response in hand. */
const MIN_USEFUL_SHARE = 0.25;

export function isNotReady(
  { notReady }: PollPolicy,
  outcome: AttemptOutcome,
): outcome is AttemptOutcome & { kind: 'response' } {
  return outcome.kind === 'response' && notReady.has(outcome.status);
}

/**
 * Decides whether to poll again, and after what delay. Delays follow the back-off; the last poll is at the end of the
 * wait, so that the client gets its response. A poll is never sooner than the upstream asks for: if that is beyond the
 * end, or if the upstream forbids a retry, there is none. Draws from `random` as the back-off does, and once more for a
 * hint.
 * @returns undefined if the response in hand is final
 */
export function choosePoll(
  policy: PollPolicy,
  hints: Hints,
  { polls, waitLeft, lastPollTime, memory }: PollProgress,
  random: Random,
): PlannedPoll | undefined {
  const timeLeft = waitLeft - lastPollTime;
  if (polls >= policy.maxPolls || timeLeft < MIN_POLL_DELAY || hints.retryAdvice === 'never') return undefined;
  const step = policy.backOff.next(polls - 1, memory, random);
  if (step === undefined) return undefined;
  const hinted = hintedDelay(hints);
  if (hinted !== undefined && hinted > timeLeft) return undefined;
  const backOffDelay = Math.max(MIN_POLL_DELAY, step.delay);
  const floor = hinted === undefined ? 0 : jitterAboveHint(hinted, random);
  const delay = Math.max(backOffDelay, floor);
  const isLast = polls + 1 >= policy.maxPolls || timeLeft < FINAL_POLL_FACTOR * delay;
  if (!isLast) {
    return {
      delay,
      source: floor > backOffDelay ? 'hint' : 'backoff',
      requestedDelay: hinted ?? 0,
      memory: step.memory,
    };
  }
  return timeLeft < MIN_USEFUL_SHARE * delay
    ? undefined
    : { delay: timeLeft, source: 'end', requestedDelay: hinted ?? 0, memory: step.memory };
}

/**
 * Repeats a refused poll after its Retry-After, as its client would.
 * @returns undefined if that is beyond the wait
 */
export function postponePoll(retryAfterMs: Millis, waitLeft: Millis, memory: number): PlannedPoll | undefined {
  const delay = Math.max(1000, retryAfterMs); // a Retry-After is at least a second
  return delay < waitLeft ? { delay, source: 'refusal', requestedDelay: delay, memory } : undefined;
}
