/**
 * Turns the crank: hands the script's steps to the gate and to an interpreter, and their answers back. The proxy and
 * the simulator are interpreters; all they own is what `Effects` names. By callback throughout, never by `await`: an
 * answer may come within the call that asked for it.
 */
import type { Answer, Script, Step } from './exchange.ts';
import type { Decision, Listen } from './policy/events.ts';
import type { Gate } from './policy/gate.ts';
import type { Retry } from './policy/retry.ts';
import { tellDecision, tellDequeued } from './policy/tell-decision.ts';
import type { Admission, Ticket } from './policy/ticket.ts';
import { ADMITTED } from './policy/ticket.ts';
import type { Clock, Millis, Outcome, Verdict } from './policy/types.ts';
import type { Watcher } from './policy/watch.ts';

/** What an interpreter does for an exchange. Each call but the last is answered by the method of `Drive` it names. */
export interface Effects {
  /** → `bodyRead`, or `gone` */
  readBody(): void;
  /** → `settled`. Called with no response in hand. */
  send(attempt: number, timeout: Millis): void;
  /** The client went away: no answer is wanted any more. */
  cancelSend(): void;
  /** The response in hand will not be forwarded. */
  discard(): void;
  /** → `woke` */
  sleep(ms: Millis): void;
  cancelSleep(): void;
  /** Something may have changed in the gate: look at its `nextWake`. */
  rearm(): void;
  finish(verdict: Verdict): void;
}

type Phase = 'new' | 'body' | 'queued' | 'sending' | 'asleep' | 'done';

export class Drive<E extends Effects = Effects> {
  readonly ticket: Ticket;
  /** Time spent in queues and asleep, for the log. */
  queued: Millis = 0;
  slept: Millis = 0;
  /** Only where we observe: what would have been decided. */
  wouldHave: Decision | undefined;
  /** What the last attempt came to. */
  outcome: Outcome | undefined;
  readonly #script: Script;
  readonly #gate: Gate;
  readonly #effects: E;
  readonly #clock: Clock;
  readonly #listen: Listen;
  readonly #request: string | undefined;
  readonly #watcher: Watcher<E> | undefined;
  #phase: Phase = 'new';
  #phaseSince: Millis = 0;
  #attempt = 0;
  #bodyInHand = false;
  #holdsResponse = false;
  /** Reserved, and not sent yet. */
  #reserved: Retry | undefined;
  /** Waits that would end after this are not begun: the proxy is going away. */
  #drainBy: Millis = Number.POSITIVE_INFINITY;
  #sleepUntil: Millis = 0;

  constructor(parts: {
    readonly script: Script;
    readonly gate: Gate;
    readonly ticket: Ticket;
    readonly effects: E;
    readonly clock: Clock;
    readonly listen: Listen;
    /** The id of the request, for its attempts to be told by. */
    readonly request?: string;
    /** Told of each step. */
    readonly watcher?: Watcher<E> | undefined;
  }) {
    this.#script = parts.script;
    this.#gate = parts.gate;
    this.ticket = parts.ticket;
    this.#effects = parts.effects;
    this.#clock = parts.clock;
    this.#listen = parts.listen;
    this.#request = parts.request;
    this.#watcher = parts.watcher;
  }

  get isDone(): boolean {
    return this.#phase === 'done';
  }

  start(): void {
    this.#watcher?.began(this.#effects);
    this.#follow(this.#script.next());
  }

  bodyRead(replayable: boolean): void {
    if (this.#phase !== 'body') return;
    this.#bodyInHand = replayable;
    this.#tell({ kind: 'body', replayable, at: this.#clock.now() });
  }

  /** A queued ticket was admitted or refused; wired to the ticket's `settle`. Where we observe, it did not wait for that. */
  settle(admission: Admission, now: Millis): void {
    if (this.#phase === 'done') return this.#gate.leave(this.ticket);
    if (this.#phase !== 'queued') return;
    const waited = now - this.#phaseSince;
    this.queued += waited;
    this.#watcher?.noted(this.#effects, tellDequeued(this.#gate, this.ticket, admission, waited, now));
    this.#tell({ ...admission, at: now });
  }

  /** What the attempt came to: its head, or its failure. */
  settled(outcome: Outcome): void {
    if (this.#phase !== 'sending') return;
    const now = this.#clock.now();
    this.outcome = outcome;
    this.#holdsResponse = outcome.kind === 'response';
    const code = outcome.kind === 'response' ? outcome.status : outcome.reason;
    const { upstream } = this.ticket;
    const { took } = outcome;
    this.#listen({ type: 'attempt', upstream, attempt: this.#attempt, code, took, request: this.#request });
    this.#gate.head(this.ticket, outcome, now);
    if (!this.#holdsResponse) this.#gate.end(this.ticket, now);
    this.#watcher?.settled(this.#effects, this.#attempt, outcome, now);
    this.#tell({ kind: 'sent', outcome, at: now });
  }

  woke(): void {
    if (this.#phase !== 'asleep') return;
    const now = this.#clock.now();
    // Timers count whole milliseconds and may fire within the last one; "not before" is meant exactly.
    if (now < this.#sleepUntil) return this.#effects.sleep(this.#sleepUntil - now);
    const slept = now - this.#phaseSince;
    this.slept += slept;
    this.#watcher?.noted(this.#effects, { what: 'waited', at: now, slept });
    this.#tell({ kind: 'waited', at: now });
  }

  /** The client went away, or its request cannot be read to the end. */
  gone(): void {
    const now = this.#clock.now();
    const during = DURING[this.#phase];
    if (during !== undefined) this.#watcher?.noted(this.#effects, { what: 'gone', at: now, during });
    switch (this.#phase) {
      case 'body':
      case 'queued':
        this.#gate.cancel(this.ticket, now);
        break;
      case 'sending': {
        this.#effects.cancelSend();
        const took = now - this.#phaseSince;
        return this.settled({ kind: 'error', reason: 'aborted', sent: true, took });
      }
      case 'asleep':
        this.#effects.cancelSleep();
        break;
      case 'new':
      case 'done':
        return;
    }
    this.#tell({ kind: 'gone', at: now });
  }

  /** The proxy goes away at `by`: a wait that would outlast it ends now, and none is begun. */
  drain(by: Millis): void {
    this.#drainBy = by;
    if (this.#phase !== 'asleep' || this.#sleepUntil <= by) return;
    this.#effects.cancelSleep();
    const now = this.#clock.now();
    this.#watcher?.noted(this.#effects, { what: 'draining', at: now });
    this.#tell({ kind: 'draining', at: now });
  }

  /** The proxy goes now: nobody's turn comes any more. */
  expire(): void {
    if (this.#phase !== 'queued') return;
    const now = this.#clock.now();
    this.#gate.cancel(this.ticket, now);
    this.#watcher?.noted(this.#effects, { what: 'draining', at: now });
    this.#tell({ kind: 'refused', why: 'draining', retryAfter: 1000, at: now });
  }

  /** The forwarded response has ended, was cut, or leaves the number in flight because it goes on for long. */
  ended(): void {
    this.#gate.end(this.ticket, this.#clock.now());
    this.#effects.rearm();
  }

  #tell(answer: Answer): void {
    this.#follow(this.#script.next(answer));
  }

  #follow(result: IteratorResult<Step, Verdict>): void {
    if (result.done === true) return this.#finish(result.value);
    const step = result.value;
    switch (step.do) {
      case 'body':
        this.#enter('body');
        return this.#effects.readBody();
      case 'admit':
        return this.#admit(step.deadline);
      case 'send':
        return this.#send(step.attempt, step.timeout);
      case 'reserve':
        return this.#reserve(step.retry, step.deadline);
      case 'wait':
        return this.#wait(step.ms);
    }
  }

  #admit(deadline: Millis): void {
    const now = this.#enter('queued');
    this.ticket.bodyInHand = this.#bodyInHand;
    const admission = this.#gate.arrive(this.ticket, deadline, now);
    this.#effects.rearm();
    if (admission?.kind === 'admitted') this.wouldHave = admission.wouldHave;
    if (this.#watcher !== undefined && admission !== ADMITTED) {
      const step = tellDecision(this.#gate, this.ticket, admission, now);
      if (step !== undefined) this.#watcher.noted(this.#effects, step);
    }
    if (admission !== undefined) this.#tell({ ...admission, at: now });
  }

  #send(attempt: number, timeout: Millis): void {
    const now = this.#enter('sending');
    this.#attempt = attempt;
    this.#reserved = undefined;
    this.#gate.sent(this.ticket, now);
    this.#watcher?.sending(this.#effects, attempt);
    this.#effects.send(attempt, timeout);
  }

  #reserve(retry: Retry, deadline: Millis): void {
    const now = this.#clock.now();
    const why = now + retry.delay > this.#drainBy ? 'deadline' : this.#gate.reserve(this.ticket, retry, deadline, now);
    if (why !== undefined) {
      this.#watcher?.noted(this.#effects, { what: 'denied', at: now, why });
      return this.#tell({ kind: 'denied', why, at: now });
    }
    this.#reserved = retry;
    const { reason, delay, source } = retry;
    this.#listen({ type: 'retry', upstream: this.ticket.upstream, reason, delay, source });
    this.#watcher?.noted(this.#effects, { what: 'retry', at: now, retry, attempt: this.#attempt });
    this.#tell({ kind: 'reserved', at: now });
  }

  #wait(ms: Millis): void {
    const now = this.#enter('asleep');
    this.#sleepUntil = now + ms;
    if (this.#holdsResponse) {
      this.#holdsResponse = false;
      this.#gate.end(this.ticket, now);
      this.#effects.discard();
    }
    this.#effects.rearm();
    this.#effects.sleep(ms);
  }

  #finish(verdict: Verdict): void {
    this.#enter('done');
    // Observed, the retry is not sent but would have been: what it would have cost is spent.
    if (verdict.wouldRetry !== undefined) this.#reserved = undefined;
    if (this.#reserved !== undefined) this.#gate.release(this.ticket, this.#reserved);
    const { upstream } = this.ticket;
    if (verdict.retryEnd !== undefined) this.#listen({ type: 'retry-end', upstream, outcome: verdict.retryEnd });
    if (verdict.kind !== 'forward' && this.#holdsResponse) {
      this.#holdsResponse = false;
      this.#gate.end(this.ticket, this.#clock.now());
      this.#effects.discard();
    }
    this.#gate.leave(this.ticket);
    this.#effects.rearm();
    this.#effects.finish(verdict);
  }

  #enter(phase: Phase): Millis {
    this.#phase = phase;
    this.#phaseSince = this.#clock.now();
    return this.#phaseSince;
  }
}

/** Where its client may leave it. */
const DURING = {
  new: undefined,
  body: 'body',
  queued: 'queue',
  sending: 'attempt',
  asleep: 'wait',
  done: undefined,
} as const satisfies Readonly<Record<Phase, string | undefined>>;
