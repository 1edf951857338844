import type { PlannedPoll, PollPolicy } from './choose-poll.ts';
import { choosePoll, isNotReady, postponePoll } from './choose-poll.ts';
import type { Millis, Random } from '../scalars.ts';
import type { AttemptOutcome } from '../exchange/attempt-outcome.ts';
import type { RefusalReason } from '../admission/gate-decision.ts';

/** Another poll, and why. */
export interface NextPoll {
  readonly poll: PlannedPoll;
  readonly after: 'not_ready' | 'refused';
  readonly decidedAt: Millis;
}

/** The polls of one request whose client waits for a result that is not ready. */
export class PollSchedule {
  readonly #policy: PollPolicy;
  /** Until then the client waits. */
  #end: Millis;
  #count = 1;
  /** Of the last poll. */
  #lastStartedAt: Millis;
  #memory = 0;

  /** @param wait how long the client would wait, from `arrivedAt` on */
  constructor(policy: PollPolicy, wait: Millis, arrivedAt: Millis) {
    this.#policy = policy;
    this.#end = arrivedAt + Math.min(wait, policy.maxWait);
    this.#lastStartedAt = arrivedAt;
  }

  /** Polls made, the request itself included; undefined if it was the only one. */
  get count(): number | undefined {
    return this.#count === 1 ? undefined : this.#count;
  }

  isNotReady(outcome: AttemptOutcome): outcome is AttemptOutcome & { kind: 'response' } {
    return isNotReady(this.#policy, outcome);
  }

  /** @returns undefined if the response in hand is final */
  choose({ hints }: AttemptOutcome & { kind: 'response' }, now: Millis, random: Random): NextPoll | undefined {
    const progress = {
      polls: this.#count,
      waitLeft: this.#end - now,
      lastPollTime: now - this.#lastStartedAt,
      memory: this.#memory,
    };
    const poll = choosePoll(this.#policy, hints, progress, random);
    return poll === undefined ? undefined : { poll, after: 'not_ready', decidedAt: now };
  }

  /** After a refused poll. @returns undefined if the refusal is final, as it is for the request itself */
  postpone(why: RefusalReason, retryAfterMs: Millis, now: Millis): NextPoll | undefined {
    if (this.#count === 1 || why === 'draining') return undefined;
    const poll = postponePoll(retryAfterMs, this.#end - now, this.#memory);
    return poll === undefined ? undefined : { poll, after: 'refused', decidedAt: now };
  }

  /** The first poll begins: what has passed since the arrival says nothing about the duration of the next ones. */
  onBodyRead(now: Millis): void {
    this.#lastStartedAt = now;
  }

  /** The poll begins. @param isLast there will be no other */
  onPollStart({ poll, after }: NextPoll, now: Millis, isLast: boolean): void {
    if (after === 'not_ready') this.#count += 1;
    this.#memory = poll.memory;
    this.#lastStartedAt = now;
    if (isLast) this.#end = now;
  }
}
