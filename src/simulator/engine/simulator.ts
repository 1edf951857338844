/**
 * Runs a scenario in virtual time, with the proxy's own exchange, gate and queues. Deterministic: the same scenario and
 * seed give the same run. Only the network delay and the upstream take time.
 */
import { LatencyEstimates } from '../../core/retry/latency-estimates.ts';
import { ClientTimeouts } from '../../core/exchange/client-timeouts.ts';
import { exchange } from '../../core/exchange/exchange.ts';
import type { EventSink } from '../../core/events/proxy-events.ts';
import { Gate } from '../../core/admission/gate.ts';
import type { LimitRef } from '../../core/limits/limit-ref.ts';
import type { GateStore } from '../../core/admission/gate-store.ts';
import type { Clock, Millis, Random } from '../../core/scalars.ts';
import type { ExchangeVerdict } from '../../core/exchange/exchange-verdict.ts';
import type { MethodAndPath } from '../upstream/request-match.ts';
import { EventQueue } from './event-queue.ts';
import { GateTimer } from './gate-timer.ts';
import type { ArrivingRequest } from './arrival-process.ts';
import { ArrivalProcess } from './arrival-process.ts';
import type { Scenario } from '../scenario.ts';
import { UPSTREAM_NAME } from '../scenario.ts';
import { seededRandom } from '../seeded-random.ts';
import type { StationClock } from '../service/station-timer.ts';
import { StationTimer } from '../service/station-timer.ts';
import { SimulatedExchange } from './simulated-exchange.ts';
import type { UpstreamDecision } from '../upstream/upstream-model.ts';
import { UpstreamModel } from '../upstream/upstream-model.ts';

/** An event that is due at a time. */
export interface ScheduledEvent {
  run(): void;
  /** Whether a proxy handles it: then it is delayed while the proxies' machine sleeps. */
  readonly isProxyEvent: boolean;
}

/** Receives the events of a run, in virtual time. */
export interface SimulationObserver {
  /** A client wants to send; `sent` is false while it honours a Retry-After. */
  onOffer(group: number, sent: boolean, cost: number): void;
  /** The upstream has decided on an attempt. */
  onUpstreamDecision(decision: UpstreamDecision): void;
  /** The proxy has given up an attempt, or its client has disconnected; the upstream works on. */
  onAbandoned?(): void;
  /** A request has ended for its client. */
  onRequestEnd(answer: SimulatedRequestResult): void;
}

export interface SimulatedRequestResult {
  readonly group: number;
  readonly member: number;
  readonly verdict: ExchangeVerdict;
  /** The status of the upstream's response where it was forwarded; else 0. */
  readonly status: number;
  readonly took: Millis;
  /** In units. */
  readonly cost: number;
  /** The part that the network and the upstream took in the last attempt. */
  readonly service: Millis;
  /** The part of it in which the upstream let the request wait for others. */
  readonly upstreamWait: Millis;
}

export interface SimulatorParts {
  readonly scenario: Scenario;
  readonly seed: number;
  /** Makes the store of a replica. */
  readonly makeStore: (replica: number, random: Random, listen: EventSink) => GateStore;
  readonly observer: SimulationObserver;
  /** Called once the simulator is complete: connects replicas that share limits. */
  readonly connect?: (world: Simulator) => void;
  readonly listen?: EventSink;
  /** The generator of an exchange; `runExchange` when absent. */
  readonly script?: typeof exchange;
}

const SHARED_LIMITS: readonly LimitRef[] = Object.freeze([
  Object.freeze({ upstream: UPSTREAM_NAME, nested: '', scope: 'upstream', key: '' }),
]);

export class Simulator implements Clock, StationClock {
  readonly scenario: Scenario;
  readonly random: Random;
  readonly upstream: UpstreamModel;
  /** The upstream's station, if it has one. */
  readonly station: StationTimer | undefined;
  readonly observer: SimulationObserver;
  readonly listen: EventSink;
  readonly script: typeof exchange;
  readonly gates: readonly Gate[];
  readonly answerTimes = new LatencyEstimates();
  /** Of each replica. */
  readonly #clientTimeouts: readonly ClientTimeouts[];
  readonly #timers: readonly GateTimer[];
  readonly #queue = new EventQueue<ScheduledEvent>();
  readonly #upstreamRandom: Random;
  #now: Millis = 0;
  #pauseIndex = -1;
  #pauseBegins = Number.POSITIVE_INFINITY;
  #pauseEnds = Number.NEGATIVE_INFINITY;

  constructor({
    scenario,
    seed,
    makeStore,
    observer,
    connect,
    listen = () => undefined,
    script = exchange,
  }: SimulatorParts) {
    this.scenario = scenario;
    this.observer = observer;
    this.listen = listen;
    this.script = script;
    this.random = seededRandom(seed);
    // A random stream of its own, so that every policy meets the same upstream.
    this.#upstreamRandom = seededRandom(seed + 2 ** 31);
    this.upstream = new UpstreamModel(scenario.upstream);
    this.station = this.#makeStation();
    const replicas = Array.from({ length: scenario.replicas }, (_, replica) => replica);
    this.gates = replicas.map((replica) => new Gate(makeStore(replica, this.random, listen), listen));
    this.#clientTimeouts = replicas.map(() => new ClientTimeouts());
    this.#timers = this.gates.map((gate) => new GateTimer(this, gate));
    connect?.(this);
  }

  now(): Millis {
    return this.#now;
  }

  wakeAt(at: Millis, run: () => void): void {
    this.schedule(at, { isProxyEvent: false, run });
  }

  /** Whether the proxies' machine sleeps: their events are delayed. */
  get isPaused(): boolean {
    while (this.#now >= this.#pauseEnds) this.#advancePause();
    return this.#now >= this.#pauseBegins;
  }

  /** Schedules an event. Events of equal time run in the order of these calls. */
  schedule(time: Millis, event: ScheduledEvent): void {
    this.#queue.push(time, event);
  }

  /** Reschedules the timer of a replica's gate, whose next wake may have changed. */
  rearm(replica: number): void {
    this.#timers[replica]?.rearm();
  }

  /** Runs to the end of the scenario. `tick` is called at every multiple of `period`. */
  run(period: Millis, tick: (now: Millis) => void): void {
    const { duration, clients, pauses } = this.scenario;
    const hasPauses = pauses.length > 0;
    for (const [index, group] of clients.entries()) new ArrivalProcess(this, index, group).start();
    let nextTick = period;
    for (;;) {
      const at = this.#queue.nextAt;
      for (; nextTick <= Math.min(at, duration); nextTick += period) {
        this.#now = nextTick;
        tick(nextTick);
      }
      if (at > duration) return;
      this.#now = at;
      const event = this.#queue.pop();
      if (event === undefined) return;
      // Delayed only when due, so that the backlog is handled in the order of arrival.
      if (hasPauses && event.isProxyEvent && this.isPaused) this.#queue.push(this.#pauseEnds, event);
      else event.run();
    }
  }

  /** Runs every event that is due by then, and sets the clock: for requests from outside, in order. */
  advance(time: Millis): void {
    while (this.#queue.nextAt <= time) {
      this.#now = this.#queue.nextAt;
      this.#queue.pop()?.run();
    }
    this.#now = time;
  }

  /** Delivers a client's request to one of the proxies. */
  arrive(request: ArrivingRequest): void {
    const replica = this.gates.length === 1 ? 0 : Math.floor(this.random() * this.gates.length);
    const gate = this.gates[replica];
    const timer = this.#timers[replica];
    const clientTimeouts = this.#clientTimeouts[replica];
    if (gate === undefined || timer === undefined || clientTimeouts === undefined) {
      throw new RangeError('a scenario has at least one replica');
    }
    const exchange = new SimulatedExchange({ simulator: this, gate, timer, clientTimeouts, request });
    if (this.isPaused) this.#queue.push(this.#pauseEnds, exchange);
    else exchange.run();
  }

  /** The upstream's decision on a request that reaches it now. */
  decide(request: MethodAndPath): UpstreamDecision {
    const decision = this.upstream.decide(this.#now, this.#upstreamRandom, request);
    this.observer.onUpstreamDecision(decision);
    return decision;
  }

  #makeStation(): StationTimer | undefined {
    const { station } = this.upstream.model;
    if (station === undefined) return undefined;
    const timer = new StationTimer(station, this, (now) => void this.upstream.limit(now));
    // Waiting requests begin when workers are added.
    for (const { at } of this.scenario.upstream.steps ?? []) this.wakeAt(at, timer.wake);
    return timer;
  }

  #advancePause(): void {
    this.#pauseIndex += 1;
    const next = this.scenario.pauses[this.#pauseIndex];
    this.#pauseBegins = next?.from ?? Number.POSITIVE_INFINITY;
    this.#pauseEnds = next?.to ?? Number.POSITIVE_INFINITY;
  }

  get hasAccounts(): boolean {
    return this.scenario.policy.accounts !== undefined;
  }

  /** @param client or the name of an account, where limits belong to accounts */
  limitsOf(client: string, group: number): readonly LimitRef[] {
    const { scope } = this.scenario.policy;
    const nested = this.scenario.clients[group]?.limits ?? [];
    const own = scope === 'upstream' ? SHARED_LIMITS : [{ upstream: UPSTREAM_NAME, nested: '', scope, key: client }];
    if (nested.length === 0) return own;
    const inner = nested.map((ref) => ({
      ...ref,
      upstream: UPSTREAM_NAME,
      key: ref.scope === 'upstream' ? ref.key : `${client} ${ref.key}`.trimEnd(),
    }));
    return [...own, ...inner];
  }
}
