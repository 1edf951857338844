import type { CutCause } from '../../../../src/core/limits/limit-state.ts';
import type { FailedSend, RejectedSend } from '../../../../src/core/rate/failed-send.ts';
import type { Millis, PerSecond } from '../../../../src/core/scalars.ts';
import { ControllerStore } from '../controller-store.ts';
import type { Controller } from '../controllers.ts';
import { PassingMeter } from '../passing-meter.ts';
import { perClient } from './adapt.ts';

const BETA = 0.7;
const SCALE = 0.4;
/** The rate is measured in buckets of this length, and smoothed. */
const BUCKET: Millis = 500;
const SMOOTHING = 0.8;
const MAX_SHARE_OF_MEASURED = 2;
const MIN_FILL_RATE: PerSecond = 0.5;
const MIN_CAPACITY = 1;
/** One token minus a rounding tolerance. */
const WHOLE = 1 - 1e-9;

/** Names as in botocore, which calls times seconds. */
export class AwsMeter extends PassingMeter {
  #enabled = false;
  #fillRate: PerSecond = 1;
  #capacity = 1;
  #tokens = 0;
  #filledAt: Millis = 0;
  #measured: PerSecond = 0;
  #bucketAt: Millis = 0;
  #count = 0;
  #wMax: PerSecond = 0;
  #lastFail: Millis = 0;

  override rate(): PerSecond {
    return this.#enabled ? this.#fillRate : Number.POSITIVE_INFINITY;
  }

  override delay(now: Millis): Millis {
    const tokens = this.#tokensAt(now);
    return !this.#enabled || tokens >= WHOLE ? 0 : (1000 * (1 - tokens)) / this.#fillRate;
  }

  override take(now: Millis): boolean {
    if (!this.#enabled) return false;
    this.#fill(now);
    this.#tokens = Math.max(0, this.#tokens - 1);
    return false;
  }

  override onAccepted(_sentAt: Millis, _among: number, now: Millis): undefined {
    const measured = this.#clock(now);
    const t = (now - this.#lastFail) / 1000;
    const k = Math.cbrt((this.#wMax * (1 - BETA)) / SCALE);
    this.#retarget(SCALE * (t - k) ** 3 + this.#wMax, measured, now);
  }

  override onRejected(_rejection: RejectedSend, now: Millis): CutCause | undefined {
    const measured = this.#clock(now);
    this.#wMax = this.#enabled ? Math.min(measured, this.#fillRate) : measured;
    this.#lastFail = now;
    this.#enabled = true;
    this.#retarget(BETA * this.#wMax, measured, now);
    return 'heavy';
  }

  /** Failures other than throttling count as successes. */
  override onFailed({ sentAt }: FailedSend, now: Millis): CutCause | undefined {
    this.onAccepted(sentAt, 0, now);
    return undefined;
  }

  #clock(now: Millis): PerSecond {
    const bucketAt = BUCKET * Math.floor(now / BUCKET);
    this.#count += 1;
    if (bucketAt > this.#bucketAt) {
      const current = (1000 * this.#count) / (bucketAt - this.#bucketAt);
      this.#measured = SMOOTHING * current + (1 - SMOOTHING) * this.#measured;
      this.#count = 0;
      this.#bucketAt = bucketAt;
    }
    return this.#measured;
  }

  #retarget(rate: PerSecond, measured: PerSecond, now: Millis): void {
    this.#fill(now);
    const bounded = Math.min(rate, MAX_SHARE_OF_MEASURED * measured);
    this.#fillRate = Math.max(MIN_FILL_RATE, bounded);
    this.#capacity = Math.max(MIN_CAPACITY, bounded);
    this.#tokens = Math.min(this.#tokens, this.#capacity);
  }

  #fill(now: Millis): void {
    this.#tokens = this.#tokensAt(now);
    this.#filledAt = now;
  }

  #tokensAt(now: Millis): number {
    return Math.min(this.#capacity, this.#tokens + ((now - this.#filledAt) * this.#fillRate) / 1000);
  }
}

/**
 * The adaptive retry mode of the AWS SDKs, in every client: a token bucket whose fill rate follows CUBIC from the first
 * throttled answer on. Its bucket waits without limit; here it waits as long as the queue of every controller. Constants and order of
 * steps: botocore/retries/{adaptive,bucket,throttling}.py at 40454ea.
 */
export const AWS_CUBIC: Controller = {
  name: 'aws-cubic',
  adapt: perClient,
  makeStore: ({ policy }, _random, listen) => new ControllerStore({ policy, listen, makeMeter: () => new AwsMeter() }),
};
