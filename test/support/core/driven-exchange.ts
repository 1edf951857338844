import type { AdmissionResult, EnforcementMode } from '../../../src/core/admission/gate-decision.ts';
import { Gate } from '../../../src/core/admission/gate.ts';
import { Ticket } from '../../../src/core/admission/ticket.ts';
import type { ProxyEvent } from '../../../src/core/events/proxy-events.ts';
import type { AttemptOutcome } from '../../../src/core/exchange/attempt-outcome.ts';
import type { ClientTimeouts } from '../../../src/core/exchange/client-timeouts.ts';
import { ClientWait } from '../../../src/core/exchange/client-wait.ts';
import type { ExchangeEffects } from '../../../src/core/exchange/effects.ts';
import { ExchangeDriver } from '../../../src/core/exchange/exchange-driver.ts';
import type { ExchangeObserver, TraceStep } from '../../../src/core/exchange/exchange-observer.ts';
import type { ExchangeVerdict } from '../../../src/core/exchange/exchange-verdict.ts';
import type { PollWaitAccounting } from '../../../src/core/exchange/poll-session.ts';
import { runExchange } from '../../../src/core/exchange/polling-exchange.ts';
import type { RequestFacts } from '../../../src/core/exchange/request-facts.ts';
import type { ExchangeGenerator, RoutePolicy } from '../../../src/core/exchange/steps.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import type { UpstreamSettings } from '../../../src/store/upstream-state.ts';
import { requestFacts, routePolicy, SHARED, upstreamSettings } from './policy-builders.ts';

export interface DrivenExchangeOptions {
  readonly facts?: Partial<RequestFacts>;
  readonly policy?: Partial<RoutePolicy>;
  readonly upstream?: Partial<UpstreamSettings>;
  readonly mode?: EnforcementMode;
  readonly pollWait?: PollWaitAccounting;
  readonly clientTimeouts?: ClientTimeouts;
  /** Replaces the life of a request. */
  readonly generator?: ExchangeGenerator;
  readonly isObserved?: boolean;
  /** Another client has taken the token of the limit. */
  readonly isTokenTaken?: boolean;
  /** Connections to the upstream, all of them free; absent: not counted. */
  readonly connections?: number;
}

/** Not 0, so that a time and a difference of times are never the same. */
export const START: Millis = 1000;

/**
 * One exchange over a real gate. The test says when a body, a claim, a response or a timer arrives; a body arrives at once
 * unless the request expects 100 Continue.
 */
export class DrivenExchange {
  now: Millis = START;
  verdict: ExchangeVerdict | undefined;
  /** How often the gate's timer was set again. */
  rearms = 0;
  /** How often the figures behind a decision were computed. */
  explanations = 0;
  readonly effects: string[] = [];
  readonly events: ProxyEvent[] = [];
  /** What the observer got: its steps, and the names of its other calls with the attempt. */
  readonly steps: TraceStep[] = [];
  readonly observed: string[] = [];
  readonly store: MemoryStore;
  readonly gate: Gate;
  readonly ticket: Ticket;
  readonly driver: ExchangeDriver;

  constructor({
    facts,
    policy,
    upstream,
    mode = 'enforce',
    pollWait,
    clientTimeouts,
    generator,
    isObserved = true,
    isTokenTaken = false,
    connections,
  }: DrivenExchangeOptions = {}) {
    const listen = (event: ProxyEvent): void => void this.events.push(event);
    const counts = { totalConnections: () => connections, freeConnections: () => connections ?? 0, stalled: () => 0 };
    this.store = new MemoryStore({
      upstreams: [upstreamSettings(upstream)],
      maxTracked: 10,
      random: () => 0.5,
      listen,
      connections: connections === undefined ? new Map() : new Map([['up', counts]]),
    });
    this.gate = new Gate(this.store, listen);
    const explain = this.gate.decisionDetails.bind(this.gate);
    this.gate.decisionDetails = (ticket, now) => {
      this.explanations += 1;
      return explain(ticket, now);
    };
    this.ticket = new Ticket('up', 'client', 1, [SHARED], (admission, now) => this.driver.onAdmission(admission, now), {
      mode,
    });
    this.driver = new ExchangeDriver({
      generator: generator ?? runExchange(requestFacts(facts), routePolicy({ mode, ...policy }), () => 0.5, this.now),
      gate: this.gate,
      ticket: this.ticket,
      effects: this.#effects(facts?.expectsContinue === true),
      clock: { now: () => this.now },
      listen,
      requestId: 'r-1',
      observer: isObserved ? this.#observer() : undefined,
      pollWait,
      clientWait: clientTimeouts && new ClientWait(clientTimeouts, this.ticket),
    });
    if (isTokenTaken) this.arrive();
  }

  /** Another client asks for admission now. */
  arrive(): { admission: AdmissionResult | undefined } {
    const other: { admission: AdmissionResult | undefined } = { admission: undefined };
    const ticket = new Ticket('up', 'other', 1, [SHARED], (admission) => {
      other.admission = admission;
    });
    other.admission = this.gate.requestAdmission(ticket, this.now + 10_000, this.now);
    return other;
  }

  start(): this {
    this.driver.start();
    return this;
  }

  /** Runs this at that time. */
  at(time: Millis, run: (driver: ExchangeDriver) => void): this {
    this.now = time;
    run(this.driver);
    return this;
  }

  /** The response to the attempt in progress, or its failure. */
  answer(outcome: AttemptOutcome, time: Millis = this.now + 10): this {
    return this.at(time, (driver) => driver.onOutcome(outcome));
  }

  /** Runs the gate's next timer at its time. */
  wakeGate(): this {
    const time = this.gate.nextWake();
    if (time === undefined) throw new Error('the gate waits for nothing');
    return this.at(time, () => this.gate.wake(time));
  }

  ofType<T extends ProxyEvent['type']>(type: T): Extract<ProxyEvent, { type: T }>[] {
    return this.events.filter((event): event is Extract<ProxyEvent, { type: T }> => event.type === type);
  }

  #effects(isUploadSlow: boolean): ExchangeEffects {
    const record = (effect: string) => (): void => void this.effects.push(effect);
    return {
      readBody: () => {
        this.effects.push('body');
        if (!isUploadSlow) this.driver.onBodyRead(true);
      },
      claim: (deadline) => this.effects.push(`claim ${deadline}`),
      stopClaim: record('stopClaim'),
      join: (deadline) => this.effects.push(`join ${deadline}`),
      leave: record('leave'),
      lookUpKey: record('look'),
      send: ({ attempt }) => this.effects.push(`send ${attempt}`),
      cancelSend: () => this.effects.push('cancelSend') > 0,
      discardResponse: record('discard'),
      sleep: (ms) => this.effects.push(`sleep ${ms}`),
      cancelSleep: record('cancelSleep'),
      rearmGateTimer: () => {
        this.rearms += 1;
      },
      finish: (verdict) => {
        this.effects.push(verdict.kind);
        this.verdict = verdict;
      },
    };
  }

  #observer(): ExchangeObserver<ExchangeEffects> {
    return {
      onStart: () => this.observed.push('start'),
      onSend: (_, attempt) => this.observed.push(`send ${attempt}`),
      onOutcome: (_, attempt, outcome, at) =>
        this.observed.push(`outcome ${attempt} ${outcome.kind === 'response' ? outcome.status : outcome.reason} ${at}`),
      onStep: (_, step) => this.steps.push(step),
      onEnd: () => undefined,
      onRefused: () => undefined,
    };
  }
}
