import { Pacer } from '../../../src/core/rate/pacer.ts';
import type { Millis, PerSecond } from '../../../src/core/scalars.ts';
import { limitOf } from '../../../src/simulator/limit-models/limit-model-spec.ts';
import { upstreamCapacity } from '../../../src/simulator/report/upstream-capacity.ts';
import { Slowness } from '../../../src/simulator/service/slowdown.ts';
import type { Scenario } from '../../../src/simulator/scenario.ts';
import { ControllerStore } from './controller-store.ts';
import type { Controller } from './controllers.ts';
import { PassingMeter } from './passing-meter.ts';

/** A meter that knows the limit at all times and paces or bounds concurrency by it, without learning. */
class OracleMeter extends PassingMeter {
  readonly #scenario: Scenario;
  readonly #pacer = new Pacer();
  readonly #capacity: ReturnType<typeof upstreamCapacity>;
  /** Without short pauses, which would make any wait seem long. */
  readonly #meanCapacity: ReturnType<typeof upstreamCapacity>;
  readonly #serviceTime: (now: Millis) => Millis;
  #now: Millis = 0;

  constructor(scenario: Scenario) {
    super();
    const { upstream, clients } = scenario;
    this.#scenario = scenario;
    const served = upstream.limit.kind === 'workers' ? clients : [];
    this.#capacity = upstreamCapacity({ ...upstream, outages: [] }, served);
    this.#meanCapacity = upstreamCapacity({ ...upstream, outages: [] }, served, MEAN_OVER);
    this.#serviceTime = workersServiceTime(scenario);
  }

  override get ceiling(): PerSecond {
    return this.rate(this.#now);
  }

  /** Its share of the limit if there are several proxies. */
  override rate(now: Millis): PerSecond {
    return this.#meanCapacity(now, this.#limit(now)) / this.#scenario.replicas;
  }

  override delay(now: Millis): Millis {
    if (!this.#boundsInFlight) return this.#pacer.delay(now, this.rate(now));
    return this.inFlight < this.#maxInFlight(now) ? 0 : Number.POSITIVE_INFINITY;
  }

  override expectedDelay(now: Millis): Millis {
    const delay = this.delay(now);
    return Number.isFinite(delay) ? delay : 1000 / this.rate(now);
  }

  override take(now: Millis, due: Millis): boolean {
    this.#pacer.take(due, this.rate(now));
    return false;
  }

  override onEnded(): boolean {
    this.inFlight -= 1;
    return this.#boundsInFlight;
  }

  override advance(now: Millis): void {
    this.#now = now;
  }

  get #boundsInFlight(): boolean {
    const { kind } = this.#scenario.upstream.limit;
    return kind === 'concurrency' || kind === 'workers';
  }

  /**
   * At workers, by Little's law: those that are served at full capacity without a wait, and those that are on the network meanwhile.
   * Without a pool behind them, that is workers × (1 + 2 network latency ÷ service time).
   */
  #maxInFlight(now: Millis): number {
    const { upstream, networkLatency, replicas } = this.#scenario;
    if (upstream.limit.kind !== 'workers') return this.#limit(now);
    const capacity = this.#capacity(now, this.#limit(now)) / replicas;
    return Math.ceil((capacity * (this.#serviceTime(now) + 2 * networkLatency)) / 1000 - ROUNDING);
  }

  #limit(now: Millis): number {
    const { limit, steps } = this.#scenario.upstream;
    let current = limitOf(limit);
    for (const step of steps ?? []) if (step.at <= now) current = step.limit;
    return current;
  }
}

/** The mean time that a request takes at workers without a wait for others, in ms. */
function workersServiceTime({ upstream, clients }: Scenario): (now: Millis) => Millis {
  const { limit } = upstream;
  if (limit.kind !== 'workers') return () => 0;
  const slowness = new Slowness(limit.slowdowns ?? []);
  const poolTime = limit.pool?.latency.mean ?? 0;
  // The inverse of the capacity of one worker that nothing slows down.
  const own = upstreamCapacity({ ...upstream, limit: { kind: 'workers', workers: 1 }, outages: [] }, clients);
  return (now) => (1000 / own(now, 1)) * slowness.at(now) + poolTime;
}

const MEAN_OVER: Millis = 1000;
const ROUNDING = 1e-9;

export const ORACLE: Controller = {
  name: 'oracle',
  makeStore: (scenario, _random, listen) =>
    new ControllerStore({ policy: scenario.policy, listen, makeMeter: () => new OracleMeter(scenario) }),
};
