/**
 * Runs a scenario in virtual time, with the proxy's own exchange, gate and queues. Deterministic: the same scenario and
 * seed give the same run. What a socket would do takes no time here but the network's delay and the upstream's own.
 */
import { exchange } from '../../core/exchange/exchange.ts';
import type { Listen } from '../../core/events/proxy-events.ts';
import { Gate } from '../../core/admission/gate.ts';
import type { LimitRef } from '../../core/limits/limit-ref.ts';
import type { Store } from '../../core/admission/gate-store.ts';
import type { Clock, Millis, Random, Verdict } from '../../core/exchange/attempt-outcome.ts';
import type { Asked } from '../upstream/nested-limit-models.ts';
import { EventQueue } from './event-queue.ts';
import { GateWake } from './gate-timer.ts';
import type { Arriving } from './arrival-process.ts';
import { Population } from './arrival-process.ts';
import type { Scenario } from '../scenario.ts';
import { UPSTREAM } from '../scenario.ts';
import { seededRandom } from '../seeded-random.ts';
import { SimulatedExchange } from './simulated-exchange.ts';
import type { Conduct } from '../upstream/upstream-model.ts';
import { Upstream } from '../upstream/upstream-model.ts';

/** Something that is due at its time. */
export interface Due {
  run(): void;
  /** Whether a proxy has to handle it: then it waits while the machine of the proxies sleeps. */
  readonly isOurs: boolean;
}

/** Who watches a run. Called as things happen, in virtual time. */
export interface Observer {
  /** A client wants to send; `sent` is false when it waits as it was told. */
  onOffer(group: number, sent: boolean): void;
  /** The upstream has decided on an attempt. */
  onConduct(conduct: Conduct): void;
  /** A request has ended for its client. */
  onAnswer(answer: Answered): void;
}

export interface Answered {
  readonly group: number;
  readonly member: number;
  readonly verdict: Verdict;
  /** Of the upstream's answer, where it was forwarded; else 0. */
  readonly status: number;
  readonly took: Millis;
  /** What the network and the upstream took of that, in the last attempt. */
  readonly service: Millis;
}

export interface WorldParts {
  readonly scenario: Scenario;
  readonly seed: number;
  /** The memory of a replica. */
  readonly makeStore: (replica: number, random: Random, listen: Listen) => Store;
  readonly observer: Observer;
  /** Called when the world stands: replicas that know of each other are connected here. */
  readonly connect?: (world: World) => void;
  readonly listen?: Listen;
  /** The life of a request; `exchange` when absent. */
  readonly script?: typeof exchange;
}

const SHARED: readonly LimitRef[] = Object.freeze([
  Object.freeze({ upstream: UPSTREAM, nested: '', scope: 'upstream', key: '' }),
]);

export class World implements Clock {
  readonly scenario: Scenario;
  readonly random: Random;
  readonly upstream: Upstream;
  readonly observer: Observer;
  readonly listen: Listen;
  readonly script: typeof exchange;
  readonly gates: readonly Gate[];
  readonly #wakes: readonly GateWake[];
  readonly #queue = new EventQueue<Due>();
  readonly #upstreamRandom: Random;
  #now: Millis = 0;
  #pause = -1;
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
  }: WorldParts) {
    this.scenario = scenario;
    this.observer = observer;
    this.listen = listen;
    this.script = script;
    this.random = seededRandom(seed);
    // Chance of its own, so that another policy meets the same upstream.
    this.#upstreamRandom = seededRandom(seed + 2 ** 31);
    this.upstream = new Upstream(scenario.upstream);
    const { mode } = scenario.policy.plan;
    const replicas = Array.from({ length: scenario.replicas }, (_, replica) => replica);
    this.gates = replicas.map((replica) => new Gate(makeStore(replica, this.random, listen), listen, mode));
    this.#wakes = this.gates.map((gate) => new GateWake(this, gate));
    connect?.(this);
  }

  now(): Millis {
    return this.#now;
  }

  /** Whether the machine of the proxies sleeps: nothing that is theirs happens. */
  get isAsleep(): boolean {
    while (this.#now >= this.#pauseEnds) this.#nextPause();
    return this.#now >= this.#pauseBegins;
  }

  /** Lets something happen at its time; what is due at the same time happens in the order of these calls. */
  at(time: Millis, due: Due): void {
    this.#queue.push(time, due);
  }

  /** What a replica's gate has to do next may have changed. */
  rearm(replica: number): void {
    this.#wakes[replica]?.rearm();
  }

  /** Runs to the end of the scenario. `tick` is called at every multiple of `period`. */
  run(period: Millis, tick: (now: Millis) => void): void {
    const { duration, clients, pauses } = this.scenario;
    const sleeps = pauses.length > 0;
    for (const [index, group] of clients.entries()) new Population(this, index, group).start();
    let nextTick = period;
    for (;;) {
      const at = this.#queue.nextAt;
      for (; nextTick <= Math.min(at, duration); nextTick += period) {
        this.#now = nextTick;
        tick(nextTick);
      }
      if (at > duration) return;
      this.#now = at;
      const due = this.#queue.pop();
      if (due === undefined) return;
      // Put off when it is due and not before, so that what piled up is handled in the order in which it came.
      if (sleeps && due.isOurs && this.isAsleep) this.#queue.push(this.#pauseEnds, due);
      else due.run();
    }
  }

  /** Lets happen what is due by then, and makes it that time: for requests that come from outside, in order. */
  advance(time: Millis): void {
    while (this.#queue.nextAt <= time) {
      this.#now = this.#queue.nextAt;
      this.#queue.pop()?.run();
    }
    this.#now = time;
  }

  /** A client's request arrives at one of the proxies. */
  arrive(arriving: Arriving): void {
    const replica = this.gates.length === 1 ? 0 : Math.floor(this.random() * this.gates.length);
    const gate = this.gates[replica];
    const wake = this.#wakes[replica];
    if (gate === undefined || wake === undefined) throw new RangeError('a scenario has at least one replica');
    const exchange = new SimulatedExchange({ world: this, gate, wake, arriving });
    if (this.isAsleep) this.#queue.push(this.#pauseEnds, exchange);
    else exchange.run();
  }

  /** The upstream's word on a request that reaches it now. */
  decide(asked: Asked): Conduct {
    const conduct = this.upstream.decide(this.#now, this.#upstreamRandom, asked);
    this.observer.onConduct(conduct);
    return conduct;
  }

  #nextPause(): void {
    this.#pause += 1;
    const next = this.scenario.pauses[this.#pause];
    this.#pauseBegins = next?.from ?? Number.POSITIVE_INFINITY;
    this.#pauseEnds = next?.to ?? Number.POSITIVE_INFINITY;
  }

  limitsOf(client: string, group: number): readonly LimitRef[] {
    const { scope } = this.scenario.policy;
    const nested = this.scenario.clients[group]?.limits ?? [];
    const own = scope === 'upstream' ? SHARED : [{ upstream: UPSTREAM, nested: '', scope, key: client }];
    if (nested.length === 0) return own;
    const inner = nested.map((ref) => ({
      ...ref,
      upstream: UPSTREAM,
      key: ref.scope === 'upstream' ? ref.key : `${client} ${ref.key}`.trimEnd(),
    }));
    return [...own, ...inner];
  }
}
