import type { Phase } from './exchange-phase.ts';
import { DURING } from './exchange-phase.ts';
import type { Listen } from '../events/proxy-events.ts';
import type { Poll } from '../polling/choose-poll.ts';
import type { Retry } from '../retry/choose-retry.ts';
import type { Millis, Outcome, RetryEnd, Verdict } from './attempt-outcome.ts';
import type { Step, Unpolled, Watcher } from './exchange-observer.ts';
import type { Unclaimed } from './steps.ts';

/** What is told of one exchange while it goes on: events to those who count, steps to those who watch. */
export class Telling<E> {
  readonly #watched: E;
  readonly #watcher: Watcher<E> | undefined;
  readonly #listen: Listen;
  readonly #upstream: string;
  /** The id of the request, for its attempts to be told by. */
  readonly #request: string | undefined;
  /** Of all sends, and of those of this poll. */
  #attempt = 0;
  #ordinal = 0;

  constructor(parts: {
    readonly watched: E;
    readonly watcher: Watcher<E> | undefined;
    readonly listen: Listen;
    readonly upstream: string;
    readonly request: string | undefined;
  }) {
    this.#watched = parts.watched;
    this.#watcher = parts.watcher;
    this.#listen = parts.listen;
    this.#upstream = parts.upstream;
    this.#request = parts.request;
  }

  get isWatched(): boolean {
    return this.#watcher !== undefined;
  }

  began(): void {
    this.#watcher?.began(this.#watched);
  }

  step(step: Step | undefined): void {
    if (step !== undefined) this.#watcher?.noted(this.#watched, step);
  }

  /** Its key was not simply free. */
  claimed(waited: Millis, why: Unclaimed['why'] | undefined, at: Millis): void {
    if (why !== 'draining') this.#listen({ type: 'key', upstream: this.#upstream, event: why ?? 'awaited' });
    this.step({ what: 'claimed', at, waited, why });
  }

  sending(ordinal: number): void {
    this.#attempt += 1;
    this.#ordinal = ordinal;
    this.#watcher?.sending(this.#watched, this.#attempt);
  }

  attempted(outcome: Outcome): void {
    const code = outcome.kind === 'response' ? outcome.status : outcome.reason;
    const { took } = outcome;
    const request = this.#request;
    this.#listen({ type: 'attempt', upstream: this.#upstream, attempt: this.#ordinal, code, took, request });
  }

  /** Once the gate has learned of it. */
  settled(outcome: Outcome, at: Millis): void {
    this.#watcher?.settled(this.#watched, this.#attempt, outcome, at);
  }

  /** A retry is begun; or not, and why. */
  retried(retry: Retry, why: RetryEnd | undefined, attemptTime: Millis, at: Millis): void {
    if (why !== undefined) return this.step({ what: 'denied', at, why, attemptTime });
    const { reason, delay, source } = retry;
    this.#listen({ type: 'retry', upstream: this.#upstream, reason, delay, source });
    this.step({ what: 'retry', at, retry, attempt: this.#attempt, ordinal: this.#ordinal });
  }

  /** It is to be asked for again; or not, and why. */
  polled(poll: Poll, after: 'not_ready' | 'refused', why: Unpolled | undefined, at: Millis): void {
    this.step(why === undefined ? { what: 'poll', at, poll, after } : { what: 'unpolled', at, why });
  }

  gone(phase: Phase, at: Millis): void {
    const during = DURING[phase];
    if (during !== undefined) this.step({ what: 'gone', at, during });
  }

  ended(verdict: Verdict, at: Millis): void {
    const { retryEnd } = verdict;
    if (isExpired(verdict)) {
      this.#listen({ type: 'key', upstream: this.#upstream, event: 'key_expired' });
      this.step({ what: 'claimed', at, waited: 0, why: 'key_expired' });
    }
    if (retryEnd !== undefined) this.#listen({ type: 'retry-end', upstream: this.#upstream, outcome: retryEnd });
  }
}

function isExpired(verdict: Verdict): boolean {
  if (verdict.kind === 'refuse') return verdict.why === 'key_expired';
  return verdict.kind === 'unknown' && verdict.reason === 'key_expired';
}
