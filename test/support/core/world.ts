/** Runs the production policy in virtual time against an upstream that is a function. */
import type { GateStore } from '../../../src/core/admission/gate-store.ts';
import { Gate } from '../../../src/core/admission/gate.ts';
import type { AdmissionCallback, EnforcementMode } from '../../../src/core/admission/gate-decision.ts';
import { BinaryHeap } from '../../../src/core/collections/binary-heap.ts';
import type { EventSink, ProxyEvent } from '../../../src/core/events/proxy-events.ts';
import type { AttemptOutcome } from '../../../src/core/exchange/attempt-outcome.ts';
import type { Millis, Random } from '../../../src/core/scalars.ts';
import { formatRetryAfter } from '../../../src/core/hints/format-retry-after.ts';
import type { Limit } from '../../../src/core/limits/limit.ts';
import type { Meter } from '../../../src/core/limits/meter.ts';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import type { UpstreamSettings } from '../../../src/store/upstream-state.ts';
import type { UpstreamQuotasParts } from '../../../src/core/quota/calendar/upstream-quotas.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import type { Arrival, Call, CallRecord, QueuedTicket, Respond, ScheduledCallback } from './call-record.ts';
import { CredentialTicket } from './credential-ticket.ts';
import { FixedMeterStore } from './fixed-meter-store.ts';
import { SHARED, response, upstreamSettings } from './policy-builders.ts';
import { startCall } from './start-call.ts';

export interface WorldOptions {
  /** Replaces the meters of the memory store. */
  readonly meters?: Readonly<Record<string, Meter>>;
  readonly upstream?: Partial<UpstreamSettings>;
  readonly respond?: Respond;
  readonly seed?: number;
  readonly random?: Random;
  readonly maxTracked?: number;
  readonly mode?: EnforcementMode;
  readonly quotas?: UpstreamQuotasParts;
  /** Called for every event, after it was recorded. */
  readonly onEvent?: EventSink;
  /** Called after every callback. */
  readonly onStep?: (world: World) => void;
}

/** An interpreter like the proxy's, without sockets and timers: it wakes the gate only when `nextWake` says so. */
export class World {
  now: Millis = 0;
  readonly events: ProxyEvent[] = [];
  readonly store: GateStore;
  readonly gate: Gate;
  readonly random: Random;
  respond: Respond;
  readonly mode: EnforcementMode;
  readonly #onStep: ((world: World) => void) | undefined;
  readonly #agenda = new BinaryHeap<ScheduledCallback>((a, b) => (a.at === b.at ? a.number < b.number : a.at < b.at));
  #number = 0;
  #wake: ScheduledCallback | undefined;

  constructor({
    meters,
    upstream,
    respond,
    seed = 1,
    random,
    maxTracked = 1000,
    mode = 'enforce',
    quotas,
    onEvent,
    onStep,
  }: WorldOptions = {}) {
    const upstreams = [upstreamSettings(upstream)];
    const listen = (event: ProxyEvent): void => {
      this.events.push(event);
      onEvent?.(event);
    };
    this.mode = mode;
    this.#onStep = onStep;
    this.random = random ?? seededRandom(seed);
    this.respond = respond ?? (() => ({ outcome: response(200), after: 10 }));
    this.store =
      meters === undefined
        ? new MemoryStore({ upstreams, maxTracked, random: this.random, listen, ...(quotas && { quotas }) })
        : new FixedMeterStore(meters, listen, upstreamSettings(upstream));
    this.gate = new Gate(this.store, listen);
  }

  at(time: Millis, run: () => void): ScheduledCallback {
    const due = { at: Math.max(time, this.now), number: (this.#number += 1), run, heapIndex: -1 };
    this.#agenda.push(due);
    return due;
  }

  cancel(callback: ScheduledCallback): void {
    this.#agenda.remove(callback);
  }

  /** @throws if time does not advance because a wake is always due */
  runUntil(end: Millis): void {
    let stepsAtOnce = 0;
    for (let due = this.#agenda.peek(); due !== undefined && due.at <= end; due = this.#agenda.peek()) {
      this.#agenda.remove(due);
      stepsAtOnce = due.at === this.now ? stepsAtOnce + 1 : 0;
      if (stepsAtOnce > 100_000) throw new Error(`time stands still at ${this.now} ms`);
      this.now = due.at;
      due.run();
      this.#onStep?.(this);
    }
    this.now = end;
  }

  /** Starts an exchange now. */
  call(call: Call = {}): CallRecord {
    return startCall(this, call);
  }

  /** A ticket that arrives now, without an exchange. */
  arrive(arrival: Arrival = {}): QueuedTicket {
    const {
      client = 'client',
      weight = 1,
      refs = [SHARED],
      deadline = this.now + 10_000,
      bodyInHand = true,
      addressGroup,
      credential = '',
      path,
      isSentExternally = false,
      arrivedAt,
      mode = this.mode,
      className,
      isProven = false,
    } = arrival;
    const settle: AdmissionCallback = (admission, now) => {
      queued.admission = admission;
      queued.at = now;
    };
    const ticket = new CredentialTicket(credential, 'up', client, weight, refs, settle, {
      addressGroup,
      isSentExternally,
      arrivedAt,
      mode,
    });
    ticket.isBodyReceived = bodyInHand;
    ticket.requestPath = path;
    ticket.clientClass = className;
    ticket.isProven = isProven;
    const queued: QueuedTicket = { ticket, admission: undefined, at: this.now };
    queued.admission = this.gate.requestAdmission(ticket, deadline, this.now);
    this.rearm();
    return queued;
  }

  /** Sends an admitted request now. */
  send(queued: QueuedTicket): void {
    this.gate.onSent(queued.ticket, this.now);
  }

  /** The outcome of a request that was sent, and its end. Returns the limit that a rejection counts against. */
  answer(queued: QueuedTicket, outcome: AttemptOutcome): Limit | undefined {
    const attributedLimit = this.gate.onOutcome(queued.ticket, outcome, this.now);
    this.gate.onAttemptEnd(queued.ticket, this.now);
    this.rearm();
    return attributedLimit;
  }

  /** Sends, answers and ends an exchange now. Returns the limit that a rejection counts against. */
  serve(queued: QueuedTicket, outcome: AttemptOutcome = response(200)): Limit | undefined {
    this.send(queued);
    const attributedLimit = this.answer(queued, outcome);
    this.gate.onExchangeEnd(queued.ticket);
    return attributedLimit;
  }

  /** A client that honours Retry-After: once rejected, it returns after that many whole seconds. */
  callUntilAdmitted(call: Call, onEnd: (record: CallRecord, tries: number) => void, tries = 1): void {
    this.call({
      ...call,
      onVerdict: (record) => {
        const { verdict } = record;
        if (verdict?.kind !== 'refuse') return onEnd(record, tries);
        const seconds = Number(formatRetryAfter(verdict.retryAfterMs ?? 0, this.random));
        this.at(this.now + 1000 * seconds, () => this.callUntilAdmitted(call, onEnd, tries + 1));
      },
    });
  }

  /** Makes calls at a steady rate from now until `end`, with a random phase. */
  stream(perSecond: number, end: Millis, call: Call = {}): CallRecord[] {
    const stories: CallRecord[] = [];
    const next = (at: Millis): void => {
      if (at >= end) return;
      this.at(at, () => {
        stories.push(this.call(call));
        next(at + 1000 / perSecond);
      });
    };
    next(this.now + (this.random() * 1000) / perSecond);
    return stories;
  }

  rearm(): void {
    const at = this.gate.nextWake();
    if (this.#wake?.at === at) return;
    if (this.#wake !== undefined) this.#agenda.remove(this.#wake);
    this.#wake = undefined;
    if (at === undefined) return;
    this.#wake = this.at(at, () => {
      this.#wake = undefined;
      this.gate.wake(this.now);
      this.rearm();
    });
  }

  /** The limit of all clients. */
  get limit(): Limit {
    const limit = this.store.findLimit(SHARED);
    if (limit === undefined) throw new Error('the upstream has no limit that all share');
    return limit;
  }

  ofType<T extends ProxyEvent['type']>(type: T): Extract<ProxyEvent, { type: T }>[] {
    return this.events.filter((event): event is Extract<ProxyEvent, { type: T }> => event.type === type);
  }
}
