import type { PollOutcome } from '../events/event-labels.ts';
import type { ExchangeGate } from '../admission/bypass-gate.ts';
import type { Ticket } from '../admission/ticket.ts';
import type { Millis } from '../scalars.ts';
import type { AttemptOutcome } from './attempt-outcome.ts';
import type { ExchangeVerdict } from './exchange-verdict.ts';
import type { PollStopReason } from './exchange-observer.ts';

/** Counts one client that the proxy polls for. */
export interface PollWaitAccounting {
  /** Counts the client as waiting. Called before each poll. @returns false if too many wait, in all or from its address */
  tryEnter(): boolean;
  /** A poll ended. */
  onPollOutcome(outcome: PollOutcome): void;
  /** The exchange is over. */
  leave(): void;
}

/** Another poll, which begins `delay` after `now`. */
interface PollReservation {
  readonly after: PollOutcome;
  readonly delay: Millis;
  readonly deadline: Millis;
  readonly now: Millis;
  /** The proxy shuts down. */
  readonly isDraining: boolean;
}

/** The polls of one exchange: whether it waits for one or makes one, and how they end. */
export class PollSession {
  /** The exchange sleeps until a poll is due. */
  isWaiting = false;
  readonly #accounting: PollWaitAccounting;
  #isPolling = false;

  constructor(accounting: PollWaitAccounting) {
    this.#accounting = accounting;
  }

  /** @param after how the last poll ended @returns why no other may begin; undefined if it may */
  reserve(
    { after, delay, deadline, now, isDraining }: PollReservation,
    gate: ExchangeGate,
    ticket: Ticket,
  ): PollStopReason | undefined {
    this.#recordOutcome(after);
    if (isDraining) return 'draining';
    const reservation = { delay, usesBudget: false, keepsAccount: after === 'not_ready' };
    if (gate.retries.reserve(ticket, reservation, deadline, now) !== undefined) return 'deadline';
    if (!this.#accounting.tryEnter()) return 'too_many_waiting';
    this.isWaiting = true;
    return undefined;
  }

  /** The exchange asks for admission. */
  admit(gate: ExchangeGate, ticket: Ticket): void {
    if (!this.isWaiting) return;
    this.isWaiting = false;
    this.#isPolling = true;
    gate.retries.beginPoll(ticket);
  }

  /** @param outcome of the last attempt */
  finish(verdict: ExchangeVerdict, outcome: AttemptOutcome | undefined): void {
    this.#recordOutcome(pollOutcomeOf(verdict, outcome));
    this.#accounting.leave();
  }

  #recordOutcome(outcome: PollOutcome): void {
    if (this.#isPolling) this.#accounting.onPollOutcome(outcome);
    this.#isPolling = false;
  }
}

function pollOutcomeOf({ kind, notReady }: ExchangeVerdict, outcome: AttemptOutcome | undefined): PollOutcome {
  if (kind === 'gone') return 'client_gone';
  if (kind === 'refuse') return 'refused';
  if (kind !== 'forward' || outcome?.kind !== 'response') return 'failed';
  if (notReady === true) return 'not_ready';
  return outcome.status < 400 ? 'ready' : 'failed';
}
