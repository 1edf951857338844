import type { PollOutcome } from '../events/proxy-events.ts';
import type { ExchangeGate } from '../admission/bypass-gate.ts';
import type { Ticket } from '../admission/ticket.ts';
import type { Millis, Outcome, Verdict } from './attempt-outcome.ts';
import type { Unpolled } from './exchange-observer.ts';

/** The wait of one client, as those see it who count them. */
export interface PollWait {
  /** Whether there is room for it, from now on; asked before each poll. */
  enter(): boolean;
  /** What a poll came to. */
  polled(outcome: PollOutcome): void;
  /** The exchange is over. */
  leave(): void;
}

/** Another poll, `delay` from `now`. */
interface Wish {
  readonly after: PollOutcome;
  readonly delay: Millis;
  readonly deadline: Millis;
  readonly now: Millis;
  /** The proxy goes away. */
  readonly isDraining: boolean;
}

/** The polls of one exchange: which one it sleeps for, which one it is at, and what they come to. */
export class PollCourse {
  /** It sleeps until a poll is due. */
  isAwaited = false;
  readonly #wait: PollWait;
  #isUnderWay = false;

  constructor(wait: PollWait) {
    this.#wait = wait;
  }

  /** Whether another may be begun, or why not. The one before has come to `after`. */
  reserve({ after, delay, deadline, now, isDraining }: Wish, gate: ExchangeGate, ticket: Ticket): Unpolled | undefined {
    this.#end(after);
    if (isDraining) return 'draining';
    if (gate.reserve(ticket, { delay, charged: false }, deadline, now) !== undefined) return 'deadline';
    if (!this.#wait.enter()) return 'too_many_waiting';
    this.isAwaited = true;
    return undefined;
  }

  /** It asks for admission. A poll that it has slept for comes as a request of its own does: its client has arrived once more. */
  admit(gate: ExchangeGate, ticket: Ticket): void {
    if (!this.isAwaited) return;
    this.isAwaited = false;
    this.#isUnderWay = true;
    gate.leave(ticket);
  }

  /** @param outcome of the last attempt */
  finish(verdict: Verdict, outcome: Outcome | undefined): void {
    this.#end(outcomeOf(verdict, outcome));
    this.#wait.leave();
  }

  #end(outcome: PollOutcome): void {
    if (this.#isUnderWay) this.#wait.polled(outcome);
    this.#isUnderWay = false;
  }
}

function outcomeOf({ kind, notReady }: Verdict, outcome: Outcome | undefined): PollOutcome {
  if (kind === 'gone') return 'client_gone';
  if (kind === 'refuse') return 'refused';
  if (kind !== 'forward' || outcome?.kind !== 'response') return 'failed';
  if (notReady === true) return 'not_ready';
  return outcome.status < 400 ? 'ready' : 'failed';
}
