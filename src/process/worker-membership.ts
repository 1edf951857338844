import type { Registry } from 'prom-client';
import type { Listen } from '../core/events/proxy-events.ts';
import type { Gate } from '../core/admission/gate.ts';
import type { Clock } from '../core/exchange/attempt-outcome.ts';
import type { Station, UpstreamOrder } from '../admin/operations/process-api.ts';
import type { WakeTimer } from '../http/wake-timer.ts';
import type { Held, Leaseholder } from '../sharing/workers/limit-client.ts';

/** What a process has of its primary, where it is one of several workers. */
export interface Membership {
  /** Which of all workers there ever are, from 1: a number is not used again. */
  readonly worker: number;
  /** What all of them are called in Via: a request that comes back to any of them has come back. */
  readonly instance: string;
  /** One that all of them read alike. */
  readonly clock: Clock;
  /** Its limits are those of all. */
  readonly leaseholder: Leaseholder;
  /** Of the practice upstream that the primary plays, if it does. */
  readonly practiceUrl: string | undefined;
  /** A session that TLS began with one of them may go on with another. */
  readonly ticketKeys: Buffer;
  /** Nothing is left here of what was configured before the last reload. */
  readonly onSettled: () => void;
  /** What operators have said before this one began. */
  readonly orders: readonly UpstreamOrder[];
  /** What the primary tells, with that of the others. */
  readonly show: (registry: Registry, station: Station) => void;
}

/** Cuts and states of limits are told by the primary, once. */
export function withoutLimits(listen: Listen): Listen {
  return (event) => {
    if (event.type !== 'limit-state' && event.type !== 'cut') listen(event);
  };
}

export function supplier(gate: Gate, timer: WakeTimer): Held['supply'] {
  return (limit, now) => {
    gate.supply(limit, now);
    timer.rearm();
  };
}
