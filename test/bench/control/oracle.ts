import { Pacer } from '../../../src/core/rate/pacer.ts';
import type { Millis, PerSecond } from '../../../src/core/exchange/attempt-outcome.ts';
import { limitOf } from '../../../src/simulator/limit-models/limit-model-spec.ts';
import { capacityOf } from '../../../src/simulator/run-scenario.ts';
import type { Scenario } from '../../../src/simulator/scenario.ts';
import { ChosenStore } from './chosen-store.ts';
import type { Controller } from './controllers.ts';
import { PassingMeter } from './passing-meter.ts';

/** Knows the limit at every time: paces by the rate, or holds as many in flight. It learns nothing, and is not cut. */
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

  /** Its own share, where there are several proxies. */
  override rate(now: Millis): PerSecond {
    const { upstream, replicas } = this.#scenario;
    return capacityOf({ ...upstream, outages: [] }, this.#limit(now), now) / replicas;
  }

  override delay(now: Millis): Millis {
    if (this.#scenario.upstream.limit.kind !== 'concurrency') return this.#pacer.delay(now, this.rate(now));
    return this.inFlight < this.#limit(now) ? 0 : Number.POSITIVE_INFINITY;
  }

  override expected(now: Millis): Millis {
    const delay = this.delay(now);
    return Number.isFinite(delay) ? delay : 1000 / this.rate(now);
  }

  override take(now: Millis, due: Millis): boolean {
    this.#pacer.take(due, this.rate(now));
    return false;
  }

  override ended(): boolean {
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
    new ChosenStore({ policy: scenario.policy, listen, makeMeter: () => new OracleMeter(scenario) }),
};
