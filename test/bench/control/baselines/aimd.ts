import type { CutCause } from '../../../../src/core/limits/limit-state.ts';
import { Pacer } from '../../../../src/core/rate/pacer.ts';
import type { FailedSend, RejectedSend } from '../../../../src/core/rate/failed-send.ts';
import { SendHistory } from '../../../../src/core/rate/send-history.ts';
import type { Millis, PerSecond } from '../../../../src/core/scalars.ts';
import { ControllerStore } from '../controller-store.ts';
import type { Controller } from '../controllers.ts';
import { PassingMeter } from '../passing-meter.ts';
import { perClient } from './adapt.ts';

/** Increase of the rate in each second in which it is fully used. */
const INCREASE: PerSecond = 1;
const DECREASE = 0.5;
const MIN_RATE: PerSecond = 0.5;

class AimdMeter extends PassingMeter {
  readonly #account = new SendHistory(50, 24);
  readonly #pacer = new Pacer();
  #rate: PerSecond = Number.POSITIVE_INFINITY;
  #cutAt: Millis = Number.NEGATIVE_INFINITY;
  #stopUntil: Millis = Number.NEGATIVE_INFINITY;

  override rate(): PerSecond {
    return this.#rate;
  }

  override delay(now: Millis): Millis {
    return Math.max(this.#stopUntil - now, this.#pacer.delay(now, this.#rate), 0);
  }

  override take(_now: Millis, due: Millis): boolean {
    this.#pacer.take(due, this.#rate);
    return false;
  }

  override onSent(now: Millis): number {
    this.#account.onSent(now);
    return super.onSent(now);
  }

  /** Grows by responses, as TCP by acknowledgements, so an unused rate does not grow. */
  override onAccepted(): undefined {
    this.#rate += INCREASE / this.#rate;
  }

  override onRejected(rejection: RejectedSend, now: Millis): CutCause | undefined {
    return this.onFailed(rejection, now);
  }

  override onFailed({ sentAt }: FailedSend, now: Millis): CutCause | undefined {
    if (sentAt <= this.#cutAt) return undefined;
    const before = Math.min(this.#rate, this.#account.sentRate(now, 1000));
    this.#rate = Math.max(MIN_RATE, DECREASE * before);
    this.#cutAt = now;
    return 'heavy';
  }

  override stop(until: Millis): void {
    this.#stopUntil = Math.max(this.#stopUntil, until);
  }
}

/**
 * Additive increase, multiplicative decrease of a paced rate in every client, with TCP's constants: one more a second,
 * half on a rejection, once a round trip; Retry-After stops that client. (Chiu and Jain, "Analysis of the Increase and
 * Decrease Algorithms for Congestion Avoidance", 1989; RFC 5681.)
 */
export const AIMD: Controller = {
  name: 'aimd',
  adapt: perClient,
  makeStore: ({ policy }, _random, listen) => new ControllerStore({ policy, listen, makeMeter: () => new AimdMeter() }),
};
