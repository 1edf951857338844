import type { ExchangeGate } from '../admission/bypass-gate.ts';
import type { Ticket } from '../admission/ticket.ts';
import type { PlannedRetry } from '../retry/choose-retry.ts';
import type { Millis } from '../scalars.ts';
import type { AttemptOutcome } from './attempt-outcome.ts';
import type { ExchangeEffects } from './effects.ts';
import type { ExchangeDriverOptions } from './exchange-driver-options.ts';
import type { PollStopReason } from './exchange-observer.ts';
import type { ExchangeReporter } from './exchange-reporter.ts';
import type { ExchangeVerdict } from './exchange-verdict.ts';
import { PollSession } from './poll-session.ts';
import type { Granted, GrantStep, PollStep, ReservationDenied, Reserved, ReserveStep } from './steps.ts';

/** What an exchange may do at once; and its waits, before a retry or a poll: whether one may begin, and what it reserves until the send. */
export class RetryWaits<E extends ExchangeEffects> {
  readonly #gate: ExchangeGate;
  readonly #ticket: Ticket;
  readonly #reporter: ExchangeReporter<E>;
  readonly #pollSession: PollSession | undefined;
  /** Reserved, and not sent yet. */
  #reservedRetry: PlannedRetry | undefined;
  /** The time of the shutdown: no wait begins that would end after it. */
  #drainDeadline: Millis = Number.POSITIVE_INFINITY;

  constructor({ gate, ticket, pollWait }: ExchangeDriverOptions<E>, reporter: ExchangeReporter<E>) {
    this.#gate = gate;
    this.#ticket = ticket;
    this.#reporter = reporter;
    this.#pollSession = pollWait === undefined ? undefined : new PollSession(pollWait);
  }

  /** Answers a step that needs no wait. */
  answer(step: GrantStep | PollStep | ReserveStep, now: Millis): Granted | Reserved | ReservationDenied {
    if (step.do === 'reserve') return this.#reserveRetry(step, now);
    if (step.do === 'poll') return this.#reservePoll(step, now);
    this.#gate.onGranted(this.#ticket, now);
    return { kind: 'granted', at: now };
  }

  /** May the retry begin? Takes what it needs if so. */
  #reserveRetry(step: ReserveStep, now: Millis): Reserved | ReservationDenied {
    const { retry, deadline } = step;
    const why =
      now + retry.delay > this.#drainDeadline
        ? 'deadline'
        : this.#gate.retries.reserve(this.#ticket, retry, deadline, now);
    this.#reporter.onRetryDecision(step, why, now);
    if (why !== undefined) return { kind: 'denied', why, at: now };
    this.#reservedRetry = retry;
    return { kind: 'reserved', at: now };
  }

  /** May the poll begin? */
  #reservePoll(step: PollStep, now: Millis): Reserved | ReservationDenied {
    const why = this.#findPollStop(step, now);
    this.#reporter.onPollDecision(step, why, now);
    return why === undefined ? { kind: 'reserved', at: now } : { kind: 'denied', why: 'deadline', at: now };
  }

  onAdmissionRequested(): void {
    this.#pollSession?.admit(this.#gate, this.#ticket);
  }

  onSent(): void {
    this.#reservedRetry = undefined;
  }

  /** The proxy shuts down at `by`. */
  startDrain(by: Millis): void {
    this.#drainDeadline = by;
  }

  /** Whether the shutdown ends a wait that lasts until `until`: it would outlast the shutdown, or is for a poll. */
  isCutByDrain(until: Millis): boolean {
    return until > this.#drainDeadline || this.#pollSession?.isWaiting === true;
  }

  /** Gives back what is reserved. @param outcome of the last attempt */
  onVerdict(verdict: ExchangeVerdict, outcome: AttemptOutcome | undefined): void {
    this.#pollSession?.finish(verdict, outcome);
    const retry = this.#reservedRetry;
    this.#reservedRetry = undefined;
    // Observe mode: enforce mode would have sent the retry, so its cost stays spent.
    if (retry !== undefined && verdict.wouldRetry === undefined) this.#gate.retries.cancel(this.#ticket, retry);
  }

  #findPollStop({ poll, after, deadline }: PollStep, now: Millis): PollStopReason | undefined {
    if (this.#pollSession === undefined) return 'deadline';
    const isDraining = this.#drainDeadline !== Number.POSITIVE_INFINITY;
    const reservation = { after, delay: poll.delay, deadline, now, isDraining };
    return this.#pollSession.reserve(reservation, this.#gate, this.#ticket);
  }
}
