import type { Poll, PollPolicy } from './choose-poll.ts';
import { choosePoll, isNotReady, putOffPoll } from './choose-poll.ts';
import type { Millis, Outcome, Random, Refusal } from '../exchange/attempt-outcome.ts';

/** Another poll, and what calls for it. */
export interface NextPoll {
  readonly poll: Poll;
  readonly after: 'not_ready' | 'refused';
  /** When that came. */
  readonly now: Millis;
}

/** The polls of one request. Made only where its client waits for what is not ready. */
export class Polling {
  readonly #policy: PollPolicy;
  /** Until when its client waits. */
  #end: Millis;
  #count = 1;
  /** When the last one began. */
  #since: Millis;
  #memory = 0;

  /** @param wait how long its client would wait, from `now` on */
  constructor(policy: PollPolicy, wait: Millis, now: Millis) {
    this.#policy = policy;
    this.#end = now + Math.min(wait, policy.maxWait);
    this.#since = now;
  }

  /** How often it was asked for; undefined where it was once. */
  get count(): number | undefined {
    return this.#count === 1 ? undefined : this.#count;
  }

  isNotReady(outcome: Outcome): outcome is Outcome & { kind: 'response' } {
    return isNotReady(this.#policy, outcome);
  }

  /** @returns undefined where the answer in hand is the last word */
  choose({ hints }: Outcome & { kind: 'response' }, now: Millis, random: Random): NextPoll | undefined {
    const soFar = { polls: this.#count, left: this.#end - now, took: now - this.#since, memory: this.#memory };
    const poll = choosePoll(this.#policy, hints, soFar, random);
    return poll === undefined ? undefined : { poll, after: 'not_ready', now };
  }

  /** @returns undefined where a refusal is the last word, as it is of the request as it came */
  putOff(why: Refusal, retryAfter: Millis, now: Millis): NextPoll | undefined {
    if (this.#count === 1 || why === 'draining') return undefined;
    const poll = putOffPoll(retryAfter, this.#end - now, this.#memory);
    return poll === undefined ? undefined : { poll, after: 'refused', now };
  }

  /** The poll begins. @param isLast nobody waits for another */
  begin({ poll, after }: NextPoll, now: Millis, isLast: boolean): void {
    if (after === 'not_ready') this.#count += 1;
    this.#memory = poll.memory;
    this.#since = now;
    if (isLast) this.#end = now;
  }
}
