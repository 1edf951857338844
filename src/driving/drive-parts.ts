import type { Listen } from '../policy/events.ts';
import type { ExchangeGate } from '../policy/open-gate.ts';
import type { Ticket } from '../policy/ticket.ts';
import type { Clock } from '../policy/types.ts';
import type { Watcher } from '../policy/watch.ts';
import type { Script } from '../script.ts';
import type { Effects } from './effects.ts';
import type { PollWait } from './poll-course.ts';

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
