import type { Listen } from '../events/proxy-events.ts';
import type { ExchangeGate } from '../admission/bypass-gate.ts';
import type { Ticket } from '../admission/ticket.ts';
import type { Clock } from './attempt-outcome.ts';
import type { Watcher } from './exchange-observer.ts';
import type { Script } from './steps.ts';
import type { Effects } from './effects.ts';
import type { PollWait } from './poll-session.ts';

export interface DriveParts<E extends Effects> {
  readonly script: Script;
  readonly gate: ExchangeGate;
  readonly ticket: Ticket;
  readonly effects: E;
  readonly clock: Clock;
  readonly listen: Listen;
  /** The id of the request, for its attempts to be told by. */
  readonly request?: string;
  /** Told of each step. */
  readonly watcher?: Watcher<E> | undefined;
  /** Where its client may be waited for; without it nothing is polled. */
  readonly pollWait?: PollWait | undefined;
}
