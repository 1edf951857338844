import { LocalMeter } from '../../../../src/core/limits/local-meter.ts';
import type { RequestAttributes } from '../../../../src/core/rate/breaker/request-attributes.ts';
import type { Millis, PerSecond } from '../../../../src/core/scalars.ts';
import { UPSTREAM_NAME } from '../../../../src/simulator/scenario.ts';
import { MemoryStore } from '../../../../src/store/memory-store.ts';
import type { Controller } from '../controllers.ts';
import { LatencyLimiter } from './latency-limiter.ts';

/** Tidegate's meter, which also limits the requests in flight by latency. */
class LatencyMeter extends LocalMeter {
  readonly #limiter = new LatencyLimiter();
  #admitted = 0;

  override get concurrencyLimit(): number | undefined {
    const limit = Math.min(super.concurrencyLimit ?? Number.POSITIVE_INFINITY, this.#limiter.limit);
    return Number.isFinite(limit) ? limit : undefined;
  }

  override rate(now: Millis): PerSecond {
    return Math.min(super.rate(now), this.#limiter.throughput);
  }

  override delay(now: Millis, attributes?: RequestAttributes): Millis {
    return this.#isFull ? Number.POSITIVE_INFINITY : super.delay(now, attributes);
  }

  override expectedDelay(now: Millis, attributes?: RequestAttributes): Millis {
    return Math.max(super.expectedDelay(now, attributes), this.#isFull ? 1000 / this.rate(now) : 0);
  }

  override awaitsPlace(now: Millis, attributes?: RequestAttributes): boolean {
    return (this.#isFull && super.delay(now, attributes) <= 0) || super.awaitsPlace(now, attributes);
  }

  override take(now: Millis, due: Millis, attributes?: RequestAttributes): boolean {
    this.#admitted += 1;
    return super.take(now, due, attributes);
  }

  override release(): void {
    this.#admitted -= 1;
    super.release();
  }

  override onEnded(): boolean {
    const isFree = super.onEnded();
    return isFree || (this.concurrencyLimit !== undefined && !this.#isFull);
  }

  override onAccepted(sentAt: Millis, inFlightAtSend: number, now: Millis, attributes?: RequestAttributes): void {
    super.onAccepted(sentAt, inFlightAtSend, now, attributes);
    if (inFlightAtSend > 0) this.#limiter.onAnswer(now - sentAt, this.inFlight, now);
  }

  override advance(now: Millis, queued: boolean, feedbackLag?: Millis): void {
    super.advance(now, queued, feedbackLag);
    this.#limiter.advance(this.inFlight, now);
  }

  get #isFull(): boolean {
    return this.inFlight + this.#admitted >= this.#limiter.limit;
  }
}

/** Tidegate with a limit on requests in flight that it learns from latency: not yet a part of it. */
export const LATENCY: Controller = {
  name: 'tidegate+latency',
  makeStore: ({ policy }, random, listen) =>
    new MemoryStore({
      upstreams: [{ name: UPSTREAM_NAME, ...policy }],
      maxTracked: 100_000,
      random,
      listen,
      makeMeter: (_, rate) => new LatencyMeter(rate, random),
    }),
};
