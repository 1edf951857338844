/**
 * Runs an exchange: passes its steps to the gate and to `ExchangeEffects` (of the proxy or the simulator), and their results
 * back. Everything is a callback, never an `await`, because a result may arrive within the call that requested it.
 */
import type { ExchangeGate } from '../admission/bypass-gate.ts';
import { ADMITTED, type AdmissionResult, type GateDecision } from '../admission/gate-decision.ts';
import type { Ticket } from '../admission/ticket.ts';
import type { KeptResponseMatch, KeyRecord } from '../idempotency/key-record.ts';
import type { Clock, Millis } from '../scalars.ts';
import type { Limit } from '../limits/limit.ts';
import type { AttemptOutcome } from './attempt-outcome.ts';
import type { ClientWait } from './client-wait.ts';
import { beginStep, type ExchangeEffects } from './effects.ts';
import type { ExchangeDriverOptions } from './exchange-driver-options.ts';
import { PHASE_OF_STEP, PHASES, type ExchangePhase } from './exchange-phase.ts';
import { ExchangeReporter } from './exchange-reporter.ts';
import type { ExchangeVerdict } from './exchange-verdict.ts';
import { RetryWaits } from './retry-waits.ts';
import type { ExchangeGenerator, ExchangeStep, KeyClaimRefused, StepResult } from './steps.ts';
import { addGateRetryAfter } from './verdict-retry-after.ts';

export class ExchangeDriver<E extends ExchangeEffects = ExchangeEffects> {
  readonly ticket: Ticket;
  readonly clientWait: ClientWait | undefined;
  /** Time spent in queues, and waiting before retries and polls, for the log. */
  queued: Millis = 0;
  slept: Millis = 0;
  /** Observe mode only: what would have been decided. */
  wouldHave: GateDecision | undefined;
  outcome: AttemptOutcome | undefined;
  /** The limit that a rejection in `outcome` counts against, if there is one. */
  attributedLimit: Limit | undefined;
  readonly #generator: ExchangeGenerator;
  readonly #gate: ExchangeGate;
  readonly #effects: E;
  readonly #clock: Clock;
  readonly #reporter: ExchangeReporter<E>;
  readonly #waits: RetryWaits<E>;
  #phase: ExchangePhase = PHASES.new;
  #phaseSince: Millis = 0;
  /** The body is kept whole, so how long an attempt takes depends only on the upstream. */
  #isBodyInHand = false;
  /** A response head has arrived that was neither discarded nor forwarded. */
  #holdsResponse = false;

  constructor(options: ExchangeDriverOptions<E>) {
    this.#generator = options.generator;
    this.#gate = options.gate;
    this.ticket = options.ticket;
    this.#effects = options.effects;
    this.#clock = options.clock;
    this.clientWait = options.clientWait;
    this.#reporter = new ExchangeReporter(options);
    this.#waits = new RetryWaits(options, this.#reporter);
  }

  get isDone(): boolean {
    return this.#phase.name === 'done';
  }

  /** @param isContinued observers know the request already: another exchange of it came before */
  start(isContinued = false): void {
    if (!isContinued) this.#reporter.onStart();
    this.#handle(this.#generator.next());
  }

  /** @param keyed the body contains the idempotency key */
  onBodyRead(replayable: boolean, keyed = false): void {
    if (this.#phase.name !== 'body') return;
    const now = this.#clock.now();
    this.#isBodyInHand = replayable;
    if (replayable) this.clientWait?.begin(now);
    this.#resume({ kind: 'body', replayable, keyed, at: now });
  }

  /** @param hasWaited another request held the key */
  onClaimed(record: KeyRecord | undefined, hasWaited = false, response?: KeptResponseMatch): void {
    if (this.#phase.name !== 'claiming') return;
    const now = this.#clock.now();
    if (hasWaited) this.queued += this.#reporter.onClaim(this.#phaseSince, undefined, now);
    this.#resume({ kind: 'claimed', record, hasWaited, response, at: now });
  }

  onClaimRefused(why: KeyClaimRefused['why'], mayHaveTakenEffect: boolean): void {
    if (this.#phase.name !== 'claiming') return;
    const now = this.#clock.now();
    this.queued += this.#reporter.onClaim(this.#phaseSince, why, now);
    this.#resume({ kind: 'unclaimed', why, mayHaveTakenEffect, at: now });
  }

  onJoined(equalId: string | undefined, hasWaited: boolean): void {
    if (this.#phase.name !== 'joining') return;
    const now = this.#clock.now();
    if (hasWaited) this.queued += this.#reporter.onJoined(this.#phaseSince, equalId, now);
    this.#resume({ kind: 'joined', hasResponse: equalId !== undefined, at: now });
  }

  onKeyKnown(record: KeyRecord | undefined): void {
    if (this.#phase.name === 'looking') this.#resume({ kind: 'known', record, at: this.#clock.now() });
  }

  /** A queued ticket was admitted or refused (`Ticket.onSettled`). In observe mode the exchange did not wait for it. */
  onAdmission(admission: AdmissionResult, now: Millis): void {
    if (this.#phase.name === 'done') return this.#gate.onExchangeEnd(this.ticket);
    if (this.#phase.name !== 'queued') return;
    this.queued += this.#reporter.onDequeued(this.#gate, admission, this.#phaseSince, now);
    this.#resume({ ...admission, at: now });
  }

  onOutcome(outcome: AttemptOutcome): void {
    if (this.#phase.name !== 'sending') return;
    const now = this.#clock.now();
    this.outcome = outcome;
    this.#holdsResponse = outcome.kind === 'response';
    this.#reporter.emitAttempt(outcome);
    this.attributedLimit = this.#gate.onOutcome(this.ticket, outcome, now);
    if (!this.#holdsResponse) this.#gate.onAttemptEnd(this.ticket, now);
    this.#reporter.onOutcome(outcome, now);
    const otherAccount = this.#gate.retries.findOtherAccount(this.ticket, outcome, now);
    this.#resume({ kind: 'sent', outcome, otherAccount, at: now });
  }

  onWake(): void {
    if (this.#phase.name !== 'asleep') return;
    const now = this.#clock.now();
    // Timers count whole milliseconds and may fire within the last one, which is too early.
    if (now < this.#phase.until) return this.#effects.sleep(this.#phase.until - now);
    this.slept += this.#reporter.onWaited(this.#phaseSince, now);
    this.#resume({ kind: 'waited', at: now });
  }

  /** The client disconnected, or its request cannot be read to the end. */
  onClientGone(hasDisconnected = false): void {
    const now = this.#clock.now();
    const { name } = this.#phase;
    this.#reporter.onClientGone(name, now);
    if (name === 'new' || name === 'done') return;
    const wait = hasDisconnected ? this.clientWait : undefined;
    if (name === 'sending') {
      const sent = this.#effects.cancelSend();
      const outcome = { kind: 'error', reason: 'aborted', sent, took: now - this.#phaseSince } as const;
      return this.onOutcome(wait?.onAborted(outcome, now) ?? outcome);
    }
    wait?.onDisconnected(now);
    if (name === 'asleep') this.#effects.cancelSleep();
    else if (name === 'joining') this.#effects.leave();
    else if (name !== 'claiming') this.#gate.cancel(this.ticket, now);
    this.#resume({ kind: 'gone', at: now });
  }

  /** The proxy shuts down at `by`: a wait that would outlast it, and every wait for a poll, ends now; none begins. */
  drain(by: Millis): void {
    this.#waits.startDrain(by);
    if (this.#phase.name !== 'asleep' || !this.#waits.isCutByDrain(this.#phase.until)) return;
    this.#effects.cancelSleep();
    const now = this.#clock.now();
    this.#reporter.recordStep({ what: 'draining', at: now });
    this.#resume({ kind: 'draining', at: now });
  }

  /** The proxy shuts down now: no queued request is admitted any more, and no key is granted. */
  expireDrain(): void {
    if (this.#phase.name === 'claiming') return this.#effects.stopClaim();
    const { name } = this.#phase;
    if (name !== 'queued' && name !== 'joining') return;
    const now = this.#clock.now();
    if (name === 'joining') this.#effects.leave();
    else this.#gate.cancel(this.ticket, now);
    this.#reporter.recordStep({ what: 'draining', at: now });
    this.#resume({ kind: 'refused', why: 'draining', retryAfterMs: 1000, at: now });
  }

  /** The forwarded response ended, was aborted, or has become a tunnel. */
  onResponseEnd(): void {
    this.#gate.onAttemptEnd(this.ticket, this.#clock.now());
    this.#effects.rearmGateTimer();
  }

  #resume(result: StepResult): void {
    this.#handle(this.#generator.next(result));
  }

  #handle(iteration: IteratorResult<ExchangeStep, ExchangeVerdict>): void {
    if (iteration.done === true) return this.#finish(iteration.value);
    const step = iteration.value;
    const phase = PHASE_OF_STEP[step.do];
    if (phase !== undefined) this.#enterPhase(phase);
    switch (step.do) {
      case 'admit':
        return this.#admit(step.deadline, step.clientTimeout);
      case 'send':
        this.#waits.onSent();
        this.#gate.onSent(this.ticket, this.#enterPhase(PHASES.sending));
        this.#reporter.onSend(step.attempt);
        return this.#effects.send(step);
      case 'grant':
      case 'reserve':
      case 'poll':
        return this.#resume(this.#waits.answer(step, this.#clock.now()));
      case 'wait':
        return this.#wait(step.ms);
      default:
        return beginStep(step, this.#effects);
    }
  }

  #admit(deadline: Millis, clientTimeout: Millis | undefined): void {
    const now = this.#enterPhase(PHASES.queued);
    this.#waits.onAdmissionRequested();
    this.ticket.isBodyReceived = this.#isBodyInHand;
    const admission = this.#gate.requestAdmission(this.ticket, deadline, now, clientTimeout);
    this.#effects.rearmGateTimer();
    if (admission?.kind === 'admitted') this.wouldHave = admission.wouldHave;
    if (admission !== ADMITTED) this.#reporter.onGateDecision(this.#gate, admission, now);
    if (admission !== undefined) this.#resume({ ...admission, at: now });
  }

  #wait(ms: Millis): void {
    const now = this.#clock.now();
    this.#enterPhase({ name: 'asleep', until: now + ms }, now);
    this.#discardResponse();
    this.#effects.rearmGateTimer();
    this.#effects.sleep(ms);
  }

  #finish(original: ExchangeVerdict): void {
    const now = this.#enterPhase(PHASES.done);
    const verdict = addGateRetryAfter(original, this.outcome, this.#gate, this.ticket, now);
    if (verdict.kind !== 'gone') this.clientWait?.onAnswered(now);
    this.#waits.onVerdict(verdict, this.outcome);
    this.#reporter.onEnd(verdict, now);
    if (verdict.kind !== 'forward') this.#discardResponse();
    this.#gate.onExchangeEnd(this.ticket);
    this.#effects.rearmGateTimer();
    this.#effects.finish(verdict);
  }

  #discardResponse(): void {
    if (!this.#holdsResponse) return;
    this.#holdsResponse = false;
    this.#gate.onAttemptEnd(this.ticket, this.#phaseSince);
    this.#effects.discardResponse();
  }

  #enterPhase(phase: ExchangePhase, now: Millis = this.#clock.now()): Millis {
    this.#phase = phase;
    this.#phaseSince = now;
    return now;
  }
}
