import type { CutCause } from '../../../../src/core/events/proxy-events.ts';
import { Pacer } from '../../../../src/core/rate/pacer.ts';
import type { Failure, Rejection } from '../../../../src/core/rate/failed-send.ts';
import { SendAccount } from '../../../../src/core/rate/send-history.ts';
import type { Millis, PerSecond } from '../../../../src/core/exchange/attempt-outcome.ts';
import { ChosenStore } from '../chosen-store.ts';
import type { Controller } from '../controllers.ts';
import { PassingMeter } from '../passing-meter.ts';
import { perClient } from './adapt.ts';

/** Requests a second gained in a second in which the rate is used up. */
const INCREASE: PerSecond = 1;
const DECREASE = 0.5;
const LEAST: PerSecond = 0.5;

class AimdMeter extends PassingMeter {
  readonly #account = new SendAccount(50, 24);
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

  override sent(now: Millis): number {
    this.#account.sent(now);
    return super.sent(now);
  }

  /** By answers, as TCP grows by acknowledgements: a rate that is not used does not grow. */
  override accepted(): void {
    this.#rate += INCREASE / this.#rate;
  }

  override rejected(rejection: Rejection, now: Millis): CutCause | undefined {
    return this.failed(rejection, now);
  }

  override failed({ sentAt }: Failure, now: Millis): CutCause | undefined {
    if (sentAt <= this.#cutAt) return undefined;
    const before = Math.min(this.#rate, this.#account.sentRate(now, 1000));
    this.#rate = Math.max(LEAST, DECREASE * before);
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
  makeStore: ({ policy }, _random, listen) => new ChosenStore({ policy, listen, makeMeter: () => new AimdMeter() }),
};
