/** Calls in a simulated world, the replies of its upstream, and the record of each call. */
import type { Gate } from '../../../src/core/admission/gate.ts';
import type { AdmissionResult, EnforcementMode } from '../../../src/core/admission/gate-decision.ts';
import type { Ticket } from '../../../src/core/admission/ticket.ts';
import type { ProxyEvent } from '../../../src/core/events/proxy-events.ts';
import type { AttemptOutcome } from '../../../src/core/exchange/attempt-outcome.ts';
import type { ExchangeVerdict } from '../../../src/core/exchange/exchange-verdict.ts';
import type { Millis, Random } from '../../../src/core/scalars.ts';
import type { RequestFacts } from '../../../src/core/exchange/request-facts.ts';
import type { ExchangeDriver } from '../../../src/core/exchange/exchange-driver.ts';
import type { PollWaitAccounting } from '../../../src/core/exchange/poll-session.ts';
import type { RoutePolicy } from '../../../src/core/exchange/steps.ts';
import type { LimitRef } from '../../../src/core/limits/limit-ref.ts';
import type { LimitModel } from '../../../src/simulator/limit-models/limit-model.ts';
import { response } from './policy-builders.ts';

/** The upstream's reply to one send: an outcome after a delay, or silence. */
export type Reply = { readonly outcome: AttemptOutcome; readonly after: Millis } | 'silence';
export type Respond = (send: Send) => Reply;

export interface Send {
  readonly client: string;
  readonly at: Millis;
  readonly attempt: number;
  readonly timeout: Millis;
}

export interface Call {
  readonly client?: string;
  readonly weight?: number;
  readonly addressGroup?: string;
  /** The path of the request; unknown when absent. */
  readonly path?: string;
  readonly facts?: Partial<RequestFacts>;
  readonly policy?: Partial<RoutePolicy>;
  readonly refs?: readonly LimitRef[];
  /** The time of the upload, in ms. */
  readonly upload?: Millis;
  readonly replayable?: boolean;
  /** The time from the head of a forwarded response to its end, in ms. */
  readonly download?: Millis;
  readonly pollWait?: PollWaitAccounting;
  /** As in `Arrival`. */
  readonly className?: string;
  readonly isProven?: boolean;
  readonly onVerdict?: (record: CallRecord) => void;
}

/** What an exchange needs of the world that it runs in. */
export interface CallWorld {
  readonly now: Millis;
  readonly mode: EnforcementMode;
  readonly gate: Gate;
  readonly random: Random;
  readonly events: ProxyEvent[];
  readonly respond: Respond;
  at(time: Millis, run: () => void): ScheduledCallback;
  cancel(callback: ScheduledCallback): void;
  rearm(): void;
}

/** Called at `at`, unless cancelled before. */
export interface ScheduledCallback {
  readonly at: Millis;
  readonly number: number;
  readonly run: () => void;
  heapIndex: number;
}

export interface Arrival {
  readonly client?: string;
  readonly weight?: number;
  readonly refs?: readonly LimitRef[];
  readonly deadline?: Millis;
  readonly bodyInHand?: boolean;
  readonly addressGroup?: string;
  /** The credential of the request; none when absent. */
  readonly credential?: string;
  /** The path of the request; unknown when absent. */
  readonly path?: string;
  /** Whether it is the check of an ingress. */
  readonly isSentExternally?: boolean;
  /** When its head had been read; now when absent. */
  readonly arrivedAt?: Millis;
  /** That of the world by default. */
  readonly mode?: EnforcementMode;
  /** Of its client; none when absent. */
  readonly className?: string;
  /** Whether its client has proven its name. */
  readonly isProven?: boolean;
}

/** A ticket and its last admission result; undefined while it waits. */
export interface QueuedTicket {
  readonly ticket: Ticket;
  admission: AdmissionResult | undefined;
  at: Millis;
}

/** The record of one call. */
export interface CallRecord {
  readonly call: Call;
  readonly driver: ExchangeDriver;
  readonly startedAt: Millis;
  readonly sends: Send[];
  /** The effects that the interpreter ran, in order. */
  readonly effects: string[];
  verdict: ExchangeVerdict | undefined;
  endedAt: Millis;
  /** The status of the last response. */
  status: number | undefined;
}

/** An upstream that answers 200 within its limit and 429 beyond, after `latency` ms. */
export function limitedBy(model: LimitModel, world: { readonly now: Millis }, latency: Millis): Respond {
  return () => {
    const admission = model.tryAcquire(world.now);
    return { outcome: response(admission.accepted ? 200 : 429), after: latency };
  };
}

/** The share of successes among the ended exchanges. */
export function successShare(records: readonly CallRecord[]): number {
  const ended = records.filter((record) => record.verdict !== undefined);
  return ended.filter(isSuccess).length / ended.length;
}

export function isSuccess({ verdict, status = 0 }: CallRecord): boolean {
  return verdict?.kind === 'forward' && status < 400;
}
