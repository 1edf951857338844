import type { ExchangeGate } from '../admission/bypass-gate.ts';
import type { Ticket } from '../admission/ticket.ts';
import type { EventSink } from '../events/proxy-events.ts';
import type { Clock } from '../scalars.ts';
import type { ClientWait } from './client-wait.ts';
import type { ExchangeEffects } from './effects.ts';
import type { ExchangeObserver } from './exchange-observer.ts';
import type { PollWaitAccounting } from './poll-session.ts';
import type { ExchangeGenerator } from './steps.ts';

export interface ExchangeDriverOptions<E extends ExchangeEffects> {
  readonly generator: ExchangeGenerator;
  readonly gate: ExchangeGate;
  readonly ticket: Ticket;
  readonly effects: E;
  readonly clock: Clock;
  readonly listen: EventSink;
  /** The id of the request, for the events of its attempts. */
  readonly requestId?: string;
  /** Gets each step. */
  readonly observer?: ExchangeObserver<E> | undefined;
  /** Absent: nothing is learned from how long the client waits. */
  readonly clientWait?: ClientWait | undefined;
  /** Present if the route polls for waiting clients; without it nothing is polled. */
  readonly pollWait?: PollWaitAccounting | undefined;
}
