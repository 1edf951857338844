import { Pacer } from '../../../src/core/rate/pacer.ts';
import type { Millis, PerSecond } from '../../../src/core/scalars.ts';
import { limitOf } from '../../../src/simulator/limit-models/limit-model-spec.ts';
import { upstreamCapacity } from '../../../src/simulator/report/upstream-capacity.ts';
import type { Scenario } from '../../../src/simulator/scenario.ts';
import { ControllerStore } from './controller-store.ts';
import type { Controller } from './controllers.ts';
import { PassingMeter } from './passing-meter.ts';

/** A meter that knows the limit at all times and paces or bounds concurrency by it, without learning. */
class OracleMeter extends PassingMeter {
  readonly #scenario: Scenario;
  readonly #pacer = new Pacer();
  #now: Millis = 0;

  constructor(scenario: Scenario) {
    super();
    this.#scenario = scenario;
  }

  override get ceiling(): PerSecond {
    return this.rate(this.#now);
  }

  /** Its share of the limit if there are several proxies. */
  override rate(now: Millis): PerSecond {
    const { upstream, replicas } = this.#scenario;
    return upstreamCapacity({ ...upstream, outages: [] })(now, this.#limit(now)) / replicas;
  }

  override delay(now: Millis): Millis {
    if (this.#scenario.upstream.limit.kind !== 'concurrency') return this.#pacer.delay(now, this.rate(now));
    return this.inFlight < this.#limit(now) ? 0 : Number.POSITIVE_INFINITY;
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
    return this.#scenario.upstream.limit.kind === 'concurrency';
  }

  override advance(now: Millis): void {
    this.#now = now;
  }

  #limit(now: Millis): number {
    const { limit, steps } = this.#scenario.upstream;
    let current = limitOf(limit);
    for (const step of steps ?? []) if (step.at <= now) current = step.limit;
    return current;
  }
}

export const ORACLE: Controller = {
  name: 'oracle',
  makeStore: (scenario, _random, listen) =>
    new ControllerStore({ policy: scenario.policy, listen, makeMeter: () => new OracleMeter(scenario) }),
};
