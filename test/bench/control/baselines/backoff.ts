import type { Plan, Script, Step } from '../../../../src/core/exchange/steps.ts';
import { exchange } from '../../../../src/core/exchange/exchange.ts';
import type { Millis, Random, RequestFacts } from '../../../../src/core/exchange/attempt-outcome.ts';
import { ChosenStore } from '../chosen-store.ts';
import type { Controller } from '../controllers.ts';
import { PassingMeter } from '../passing-meter.ts';

/** Where nothing paces, only the budget bounds the retries of 429s. */
function* chargeAll(request: RequestFacts, plan: Plan, random: Random, arrived: Millis): Script {
  const script = exchange(request, plan, random, arrived);
  let next = script.next();
  while (next.done !== true) next = script.next(yield charge(next.value));
  return next.value;
}

function charge(step: Step): Step {
  return step.do === 'reserve' ? { ...step, retry: { ...step.retry, charged: true } } : step;
}

/**
 * What a careful HTTP client does: exponential backoff with jitter, every retry paid from a budget (0.2 for each
 * success), and no client asks again before the Retry-After it was told.
 */
export const BACKOFF: Controller = {
  name: 'backoff',
  script: chargeAll,
  makeStore: ({ policy }, _random, listen) => new ChosenStore({ policy, listen, makeMeter: () => new PassingMeter() }),
};
