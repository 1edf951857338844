import type { DeliveryAttempt, DeliveryEnd, DeliveryResult } from '../../core/delivery/delivery.ts';
import { deliveryEnded } from '../../core/delivery/delivery-ended.ts';
import { nextAttemptAt } from '../../core/delivery/delivery-schedule.ts';
import { randomBytes } from 'node:crypto';
import type { Acknowledgement } from '../../core/delivery/acknowledgement.ts';
import type { DeliveryPolicy } from '../../core/delivery/delivery-policy.ts';
import type { DeliveryStore, DueDelivery } from '../../core/delivery/delivery-store.ts';
import type { EventSink } from '../../core/events/proxy-events.ts';
import type { RequestRecord } from '../../core/events/request-record.ts';
import type { Millis, Random } from '../../core/scalars.ts';
import { selectKeptHeaders } from '../idempotency/kept-response.ts';
import { LONGEST_TIMER } from '../longest-timer.ts';
import type { Route } from '../request/route.ts';
import { makeDeliveryId } from './delivery-id.ts';
import { describeDelivery } from './delivery-status.ts';
import { DeliveryRequest } from './delivery-request.ts';
import { BufferedResponse } from '../response/buffered-response.ts';
import { type AttemptJudgement, judgeAttempt } from './judge-attempt.ts';
import { makeCallback } from './write-callback.ts';
import { judgeWrite, mayHaveTakenEffect, type WriteAttempt } from './judge-write.ts';
import { findWriteDefect } from './write-defect.ts';

export interface DeliveryDispatcherParts {
  readonly store: DeliveryStore;
  /** The routes that deliver, by the configuration in effect. */
  readonly routes: () => readonly Route[];
  /** Sends an attempt as a request of the route. @param onDone called once */
  readonly send: (
    route: Route,
    request: DeliveryRequest,
    response: BufferedResponse,
    onDone: (record: RequestRecord, write?: WriteAttempt) => void,
  ) => void;
  readonly wallClock: () => Millis;
  /** Calls `run` after this time; 0: in a later turn of the event loop. Returns what cancels it. */
  readonly schedule: (delay: Millis, run: () => void) => () => void;
  readonly random: Random;
  readonly listen: EventSink;
  /** The store wakes one of several processes when the next delivery is due: this one needs no timer. */
  readonly isWokenWhenDue?: boolean;
}

/** How a route sends what it has stored. */
type SendingPolicy = Pick<DeliveryPolicy, 'schedule' | 'concurrency'>;

/** Sends the stored deliveries that are due, as many of a route at a time as it allows, and records how each attempt ended. */
export class DeliveryDispatcher {
  readonly #parts: DeliveryDispatcherParts;
  /** Attempts in progress, by the name of the route. */
  readonly #sending = new Map<string, number>();
  #cancelTimer: (() => void) | undefined;
  #isWoken = false;
  #isTaking = false;
  #isStopped = false;

  constructor(parts: DeliveryDispatcherParts) {
    this.#parts = parts;
  }

  /** A delivery may be due that was not before. Looks at the store once in this turn of the event loop. */
  wake(): void {
    if (this.#isWoken || this.#isStopped) return;
    this.#isWoken = true;
    if (!this.#isTaking) this.#parts.schedule(0, () => void this.#dispatch());
  }

  /** Begins no more attempts. Those in progress end with the requests in flight. */
  stop(): void {
    this.#isStopped = true;
    this.#cancelTimer?.();
  }

  async #dispatch(): Promise<void> {
    this.#isWoken = false;
    if (this.#isStopped) return;
    const { routes, wallClock, schedule } = this.#parts;
    const now = wallClock();
    this.#isTaking = true;
    const dueAt = await Promise.all(routes().map((route) => this.#dispatchRoute(route, now)));
    this.#isTaking = false;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    if (this.#isStopped) return;
    if (this.#isWoken) return void schedule(0, () => void this.#dispatch()); // something has changed meanwhile
    if (this.#parts.isWokenWhenDue === true) return;
    const next = Math.min(...dueAt);
    if (next === Number.POSITIVE_INFINITY) return; // an addition, or the end of an attempt, wakes it
    const delay = Math.min(LONGEST_TIMER, Math.max(1, Math.ceil(next - now)));
    this.#cancelTimer = schedule(delay, () => void this.#dispatch());
  }

  /** Sends what is due. @returns when the next one can be sent: infinity, if the end of an attempt decides that */
  async #dispatchRoute(route: Route, now: Millis): Promise<Millis> {
    const { name } = route;
    const policy = route.delivery ?? route.asyncWrites;
    if (policy === undefined || this.#freePlaces(policy, name) <= 0) return Number.POSITIVE_INFINITY;
    const { store } = this.#parts;
    const taken = await store.takeDue(name, now, this.#freePlaces(policy, name), policy.concurrency);
    for (const due of taken.deliveries) {
      if (this.#isStopped) store.postpone(due.delivery.id, now, undefined);
      else this.#send(route, policy, due);
    }
    if (this.#freePlaces(policy, name) <= 0) return Number.POSITIVE_INFINITY;
    return taken.nextDueAt ?? Number.POSITIVE_INFINITY;
  }

  #freePlaces({ concurrency }: SendingPolicy, route: string): number {
    return concurrency - (this.#sending.get(route) ?? 0);
  }

  #send(route: Route, policy: SendingPolicy, due: DueDelivery): void {
    const { name } = route;
    this.#sending.set(name, (this.#sending.get(name) ?? 0) + 1);
    const { wallClock, send } = this.#parts;
    const at = wallClock();
    const isWrite = due.delivery.kind === 'write';
    const callback = isWrite ? route.asyncWrites?.callback : undefined;
    const response = new BufferedResponse(isWrite ? route.asyncWrites?.maxResponse : undefined);
    const keys = isWrite ? undefined : route.delivery?.signingKeys;
    const request = new DeliveryRequest(due, keys && { keys, at });
    const onEnd = (
      judgement: AttemptJudgement,
      status: number | undefined,
      result: DeliveryResult | undefined,
    ): void => {
      this.#sending.set(name, (this.#sending.get(name) ?? 1) - 1);
      this.#conclude(policy, due, judgement, { status, result, at, callback });
      this.wake();
    };
    const defect = isWrite ? findWriteDefect(route, request, due.message.body) : undefined;
    if (defect !== undefined) return onEnd(defect, undefined, undefined);
    send(route, request, response, (record, write) => {
      const judgement = judge(route, due, response, record, write);
      onEnd(judgement, record.status || undefined, isWrite ? resultOf(response, route) : undefined);
    });
  }

  #conclude({ schedule }: SendingPolicy, due: DueDelivery, judgement: AttemptJudgement, ended: EndedAttempt): void {
    const { store, wallClock, random, listen } = this.#parts;
    const { delivery } = due;
    const { status, at } = ended;
    const { id, route, startedAt = at } = delivery;
    const now = wallClock();
    const retryAfterMs = judgement.kind === 'acknowledged' ? undefined : judgement.retryAfterMs;
    if (judgement.kind === 'not_sent') {
      listen({ type: 'delivery-attempt', route, reason: 'postponed', took: now - at });
      return store.postpone(id, now + (retryAfterMs ?? 0), undefined);
    }
    const failure = judgement.kind === 'failed' ? judgement : undefined;
    const reason = failure?.reason;
    const attempt: DeliveryAttempt = { at, took: now - at, status, reason };
    listen({ type: 'delivery-attempt', route, reason: reason ?? 'acknowledged', took: now - at });
    if (failure === undefined) return this.#end(due, 'delivered', attempt, ended);
    const attempts = delivery.attempts + 1;
    const progress = { attempts, firstAt: startedAt, lastEndedAt: now, retryAfterMs };
    const next = failure.isFinal === true ? undefined : nextAttemptAt(schedule, progress, random);
    if (next !== undefined) return store.postpone(id, next, attempt);
    this.#end(due, failure.isUnknown === true ? 'unknown' : 'dead', attempt, { ...ended, result: undefined });
  }

  /** Stores the end of a write with its callback: neither is lost without the other. */
  #end(due: DueDelivery, end: DeliveryEnd, attempt: DeliveryAttempt, { result, callback }: EndedAttempt): void {
    const { store, wallClock, listen, routes } = this.#parts;
    const { delivery } = due;
    const { id } = delivery;
    const now = wallClock();
    const ended = { ...delivery, attempts: delivery.attempts + 1, lastAttempt: attempt, state: { kind: end, at: now } };
    listen(deliveryEnded(ended, end, now));
    const parts = { id: makeDeliveryId(now, randomBytes), now, callback, routes: routes() };
    const message = callback === undefined ? undefined : makeCallback(due, describeDelivery(ended, result), parts);
    store.end(id, end, now, attempt, result, message);
  }
}

interface EndedAttempt {
  /** Of the response; undefined if there was none. */
  readonly status: number | undefined;
  readonly result: DeliveryResult | undefined;
  /** The name of the route for the callback of a write. */
  readonly callback: string | undefined;
  /** When it began. */
  readonly at: Millis;
}

function judge(
  { delivery: policy }: Route,
  { delivery: { kind, lastAttempt } }: DueDelivery,
  response: BufferedResponse,
  record: RequestRecord,
  write: WriteAttempt = NO_ATTEMPT,
): AttemptJudgement {
  if (kind === 'message') return judgeAttempt(record, response.body, policy?.acknowledgement ?? ANY_SUCCESS);
  const wasUnknown = mayHaveTakenEffect(lastAttempt?.reason);
  return judgeWrite(record, write, { wasUnknown, isWhole: response.writableFinished });
}

const NO_ATTEMPT: WriteAttempt = { meaning: undefined, isLocked: false, wasAnswered: false };

/** For messages whose route has no `deliver` any more. */
const ANY_SUCCESS: Acknowledgement = {
  statuses: new Set(Array.from({ length: 100 }, (_, i) => 200 + i)),
  body: undefined,
};

function resultOf({ statusCode: status, headers, body }: BufferedResponse, { target }: Route): DeliveryResult {
  return { status, headers: selectKeptHeaders(headers, target.throttle?.pacingHeaders), body };
}
