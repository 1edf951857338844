import type { RoutePolicy, ExchangeGenerator, ExchangeStep } from '../../../../src/core/exchange/steps.ts';
import { exchange } from '../../../../src/core/exchange/exchange.ts';
import type { Millis, Random } from '../../../../src/core/scalars.ts';
import type { RequestFacts } from '../../../../src/core/exchange/request-facts.ts';
import { ControllerStore } from '../controller-store.ts';
import type { Controller } from '../controllers.ts';
import { PassingMeter } from '../passing-meter.ts';

/** Without pacing, only the budget bounds retries after 429. */
function* chargeAll(request: RequestFacts, plan: RoutePolicy, random: Random, arrived: Millis): ExchangeGenerator {
  const script = exchange(request, plan, random, arrived);
  let next = script.next();
  while (next.done !== true) next = script.next(yield charge(next.value));
  return next.value;
}

function charge(step: ExchangeStep): ExchangeStep {
  return step.do === 'reserve' ? { ...step, retry: { ...step.retry, usesBudget: true } } : step;
}

/**
 * A careful HTTP client: exponential backoff with jitter, retries limited by a budget (0.2 for each success), and no
 * request before the Retry-After it received.
 */
export const BACKOFF: Controller = {
  name: 'backoff',
  script: chargeAll,
  makeStore: ({ policy }, _random, listen) =>
    new ControllerStore({ policy, listen, makeMeter: () => new PassingMeter() }),
};
