/**
 * Turns the crank: hands the script's steps to the gate and to an interpreter, and their answers back. The proxy and
 * the simulator are interpreters; all they own is what `Effects` names. By callback throughout, never by `await`: an
 * answer may come within the call that asked for it.
 */
import type { DriveParts } from './exchange-driver-options.ts';
import type { Effects } from './effects.ts';
import type { Phase } from './exchange-phase.ts';
import { PollCourse } from './poll-session.ts';
import type { Decision } from '../events/proxy-events.ts';
import type { ExchangeGate } from '../admission/bypass-gate.ts';
import type { Retry } from '../retry/choose-retry.ts';
import { tellDecision, tellDequeued } from './decision-steps.ts';
import { ADMITTED, type Admission, type Ticket } from '../admission/ticket.ts';
import type { Clock, KeyRecord, Millis, Outcome, Verdict } from './attempt-outcome.ts';
import type { Answer, Script, SendStep, Step, Unclaimed } from './steps.ts';
import { Telling } from './exchange-reporter.ts';
import { withRetryAfter } from './verdict-retry-after.ts';

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
  readonly #gate: ExchangeGate;
  readonly #effects: E;
  readonly #clock: Clock;
  readonly #telling: Telling<E>;
  readonly #polls: PollCourse | undefined;
  #phase: Phase = 'new';
  #phaseSince: Millis = 0;
  #bodyInHand = false;
  #awaitsClaim = false;
  #holdsResponse = false;
  /** Reserved, and not sent yet. */
  #reserved: Retry | undefined;
  /** Waits that would end after this are not begun: the proxy is going away. */
  #drainBy: Millis = Number.POSITIVE_INFINITY;
  #sleepUntil: Millis = 0;

  constructor(parts: DriveParts<E>) {
    this.#script = parts.script;
    this.#gate = parts.gate;
    this.ticket = parts.ticket;
    this.#effects = parts.effects;
    this.#clock = parts.clock;
    const { effects: watched, watcher, listen, request } = parts;
    this.#telling = new Telling<E>({ watched, watcher, listen, upstream: parts.ticket.upstream, request });
    this.#polls = parts.pollWait === undefined ? undefined : new PollCourse(parts.pollWait);
  }

  get isDone(): boolean {
    return this.#phase === 'done';
  }

  start(): void {
    this.#telling.began();
    this.#follow(this.#script.next());
  }

  /** @param keyed the idempotency key stands in it */
  bodyRead(replayable: boolean, keyed = false): void {
    if (this.#phase !== 'body') return;
    this.#bodyInHand = replayable;
    this.#tell({ kind: 'body', replayable, keyed, at: this.#clock.now() });
  }

  /** The key may be sent with. @param record what is remembered of its write */
  claimed(record: KeyRecord | undefined): void {
    if (this.#phase !== 'claiming') return;
    const at = this.#endClaim(undefined);
    this.#tell({ kind: 'claimed', record, at });
  }

  /** @param mayBeDone by the request that has the key */
  unclaimed(why: Unclaimed['why'], mayBeDone: boolean): void {
    if (this.#phase !== 'claiming') return;
    const at = this.#endClaim(why);
    this.#tell({ kind: 'unclaimed', why, mayBeDone, at });
  }

  /** A queued ticket was admitted or refused; wired to the ticket's `settle`. Where we observe, it did not wait for that. */
  settle(admission: Admission, now: Millis): void {
    if (this.#phase === 'done') return this.#gate.leave(this.ticket);
    if (this.#phase !== 'queued') return;
    const waited = now - this.#phaseSince;
    this.queued += waited;
    if (this.#telling.isWatched) this.#telling.step(tellDequeued(this.#gate, this.ticket, admission, waited, now));
    this.#tell({ ...admission, at: now });
  }

  /** What the attempt came to: its head, or its failure. */
  settled(outcome: Outcome): void {
    if (this.#phase !== 'sending') return;
    const now = this.#clock.now();
    this.outcome = outcome;
    this.#holdsResponse = outcome.kind === 'response';
    this.#telling.attempted(outcome);
    this.#gate.head(this.ticket, outcome, now);
    if (!this.#holdsResponse) this.#gate.end(this.ticket, now);
    this.#telling.settled(outcome, now);
    this.#tell({ kind: 'sent', outcome, at: now });
  }

  woke(): void {
    if (this.#phase !== 'asleep') return;
    const now = this.#clock.now();
    // Timers count whole milliseconds and may fire within the last one; "not before" is meant exactly.
    if (now < this.#sleepUntil) return this.#effects.sleep(this.#sleepUntil - now);
    const slept = now - this.#phaseSince;
    this.slept += slept;
    this.#telling.step({ what: 'waited', at: now, slept });
    this.#tell({ kind: 'waited', at: now });
  }

  /** The client went away, or its request cannot be read to the end. */
  gone(): void {
    const now = this.#clock.now();
    this.#telling.gone(this.#phase, now);
    switch (this.#phase) {
      case 'body':
      case 'queued':
        this.#gate.cancel(this.ticket, now);
        break;
      case 'sending': {
        const sent = this.#effects.cancelSend();
        return this.settled({ kind: 'error', reason: 'aborted', sent, took: now - this.#phaseSince });
      }
      case 'claiming':
        this.#effects.cancelClaim();
        break;
      case 'asleep':
        this.#effects.cancelSleep();
        break;
      case 'new':
      case 'done':
        return;
    }
    this.#tell({ kind: 'gone', at: now });
  }

  /** The proxy goes away at `by`: a wait that would outlast it ends now, and so does every wait for a poll; none is begun. */
  drain(by: Millis): void {
    this.#drainBy = by;
    if (this.#phase !== 'asleep' || (this.#sleepUntil <= by && this.#polls?.isAwaited !== true)) return;
    this.#effects.cancelSleep();
    const now = this.#clock.now();
    this.#telling.step({ what: 'draining', at: now });
    this.#tell({ kind: 'draining', at: now });
  }

  /** The proxy goes now: nobody's turn comes any more. */
  expire(): void {
    if (this.#phase === 'claiming') return this.unclaimed('draining', this.#effects.cancelClaim());
    if (this.#phase !== 'queued') return;
    const now = this.#clock.now();
    this.#gate.cancel(this.ticket, now);
    this.#telling.step({ what: 'draining', at: now });
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
      case 'claim':
        return this.#claim(step.deadline);
      case 'admit':
        return this.#admit(step.deadline);
      case 'look':
        return this.#tell({ kind: 'known', record: this.#effects.lookUp(), at: this.#clock.now() });
      case 'send':
        return this.#send(step);
      case 'grant':
        return this.#grant();
      case 'reserve':
        return this.#reserve(step);
      case 'poll':
        return this.#poll(step);
      case 'wait':
        return this.#wait(step.ms);
    }
  }

  #claim(deadline: Millis): void {
    this.#enter('claiming');
    this.#effects.claim(deadline);
    this.#awaitsClaim = this.#phase === 'claiming';
  }

  /** Tells of it where it was not simply free. */
  #endClaim(why: Unclaimed['why'] | undefined): Millis {
    const at = this.#clock.now();
    if (why === undefined && !this.#awaitsClaim) return at;
    const waited = at - this.#phaseSince;
    this.queued += waited;
    this.#telling.claimed(waited, why, at);
    return at;
  }

  #admit(deadline: Millis): void {
    const now = this.#enter('queued');
    this.#polls?.admit(this.#gate, this.ticket);
    this.ticket.bodyInHand = this.#bodyInHand;
    const admission = this.#gate.arrive(this.ticket, deadline, now);
    this.#effects.rearm();
    if (admission?.kind === 'admitted') this.wouldHave = admission.wouldHave;
    if (this.#telling.isWatched && admission !== ADMITTED) {
      this.#telling.step(tellDecision(this.#gate, this.ticket, admission, now));
    }
    if (admission !== undefined) this.#tell({ ...admission, at: now });
  }

  #send(step: SendStep): void {
    const now = this.#enter('sending');
    this.#reserved = undefined;
    this.#gate.sent(this.ticket, now);
    this.#telling.sending(step.attempt);
    this.#effects.send(step);
  }

  #grant(): void {
    const now = this.#clock.now();
    this.#gate.granted(this.ticket, now);
    this.#tell({ kind: 'granted', at: now });
  }

  #reserve({ retry, deadline, attemptTime }: Extract<Step, { readonly do: 'reserve' }>): void {
    const now = this.#clock.now();
    const why = now + retry.delay > this.#drainBy ? 'deadline' : this.#gate.reserve(this.ticket, retry, deadline, now);
    this.#telling.retried(retry, why, attemptTime, now);
    if (why !== undefined) return this.#tell({ kind: 'denied', why, at: now });
    this.#reserved = retry;
    this.#tell({ kind: 'reserved', at: now });
  }

  #poll({ poll, after, deadline }: Extract<Step, { readonly do: 'poll' }>): void {
    const now = this.#clock.now();
    const isDraining = this.#drainBy !== Number.POSITIVE_INFINITY;
    const asked = { after, delay: poll.delay, deadline, now, isDraining };
    const why = this.#polls === undefined ? 'deadline' : this.#polls.reserve(asked, this.#gate, this.ticket);
    this.#telling.polled(poll, after, why, now);
    this.#tell(why === undefined ? { kind: 'reserved', at: now } : { kind: 'denied', why: 'deadline', at: now });
  }

  #wait(ms: Millis): void {
    this.#sleepUntil = this.#enter('asleep') + ms;
    this.#letGo();
    this.#effects.rearm();
    this.#effects.sleep(ms);
  }

  #finish(decided: Verdict): void {
    this.#enter('done');
    const verdict = withRetryAfter(decided, this.outcome, this.#gate, this.ticket, this.#phaseSince);
    this.#polls?.finish(verdict, this.outcome);
    // Observed, the retry is not sent but would have been: what it would have cost is spent.
    if (verdict.wouldRetry !== undefined) this.#reserved = undefined;
    if (this.#reserved !== undefined) this.#gate.release(this.ticket, this.#reserved);
    this.#telling.ended(verdict, this.#phaseSince);
    if (verdict.kind !== 'forward') this.#letGo();
    this.#gate.leave(this.ticket);
    this.#effects.rearm();
    this.#effects.finish(verdict);
  }

  /** The response in hand, if there is one, will not be forwarded. */
  #letGo(): void {
    if (!this.#holdsResponse) return;
    this.#holdsResponse = false;
    this.#gate.end(this.ticket, this.#phaseSince);
    this.#effects.discard();
  }

  #enter(phase: Phase): Millis {
    this.#phase = phase;
    this.#phaseSince = this.#clock.now();
    return this.#phaseSince;
  }
}
