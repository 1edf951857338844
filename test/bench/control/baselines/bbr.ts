import { Pacer } from '../../../../src/core/rate/pacer.ts';
import type { Millis, PerSecond } from '../../../../src/core/scalars.ts';
import { ControllerStore, ForgetfulClients } from '../controller-store.ts';
import type { Controller } from '../controllers.ts';
import { PassingMeter } from '../passing-meter.ts';
import { DeliveryRate } from './delivery-rate.ts';

const HIGH_GAIN = 2.885;
const IN_FLIGHT_GAIN = 2;
const CYCLE = [1.25, 0.75, 1, 1, 1, 1, 1, 1];
const PACING_MARGIN = 0.99;
const MIN_RTT_WINDOW: Millis = 10_000;
const PROBE_RTT_TIME: Millis = 200;
const FIRST_IN_FLIGHT = 10;
const MIN_IN_FLIGHT = 4;
const FULL_GROWTH = 1.25;
const FULL_ROUNDS = 3;

export class BbrMeter extends PassingMeter {
  readonly #pacer = new Pacer();
  readonly #delivery = new DeliveryRate();
  #mode: 'startup' | 'drain' | 'cycle' | 'probe-rtt' = 'startup';
  #maxInFlight = FIRST_IN_FLIGHT;
  #minRtt: Millis = Number.POSITIVE_INFINITY;
  #minRttAt: Millis = 0;
  #probeEndsAt: Millis = Number.POSITIVE_INFINITY;
  #fullRate = 0;
  #fullRounds = 0;
  #phase = 0;
  #phaseAt: Millis = 0;
  #hasQueue = false;

  /** Not paced before the first responses. */
  override rate(): PerSecond {
    const rate = 1000 * PACING_MARGIN * this.#gain * this.#delivery.max;
    return this.#delivery.delivered < FIRST_IN_FLIGHT ? Number.POSITIVE_INFINITY : rate;
  }

  override delay(now: Millis): Millis {
    return this.inFlight < this.#maxInFlight ? this.#pacer.delay(now, this.rate()) : Number.POSITIVE_INFINITY;
  }

  override expectedDelay(now: Millis): Millis {
    return this.#pacer.delay(now, this.rate());
  }

  override take(_now: Millis, due: Millis): boolean {
    this.#pacer.take(due, this.rate());
    return false;
  }

  override advance(_now: Millis, hasQueue = false): void {
    this.#hasQueue = hasQueue;
  }

  override onSent(now: Millis): number {
    this.#delivery.onSent(now, this.inFlight, !this.#hasQueue && this.inFlight + 1 < this.#maxInFlight);
    return super.onSent(now);
  }

  override onEnded(): boolean {
    this.inFlight -= 1;
    return true;
  }

  override onAccepted(sentAt: Millis, _among: number, now: Millis): undefined {
    if (this.#delivery.onDelivered(sentAt, now)) this.#checkFull();
    if (this.#mode === 'startup' && this.#isFull) this.#mode = 'drain';
    if (this.#mode === 'drain' && this.inFlight <= this.#product) this.#mode = 'cycle';
    if (this.#mode === 'cycle' && now - this.#phaseAt > this.#minRtt) {
      this.#phase = (this.#phase + 1) % CYCLE.length;
      this.#phaseAt = now;
    }
    this.#updateMinRtt(now - sentAt, now);
    this.#maxInFlight = this.#mode === 'probe-rtt' ? MIN_IN_FLIGHT : Math.max(MIN_IN_FLIGHT, this.#nextInFlight());
  }

  /** It never falls before the rate has ceased to grow. */
  #nextInFlight(): number {
    const target = Math.ceil((this.#mode === 'cycle' ? IN_FLIGHT_GAIN : HIGH_GAIN) * this.#product);
    if (this.#isFull) return Math.min(this.#maxInFlight + 1, target);
    return this.#maxInFlight < target || this.#delivery.delivered < FIRST_IN_FLIGHT
      ? this.#maxInFlight + 1
      : this.#maxInFlight;
  }

  get #isFull(): boolean {
    return this.#fullRounds >= FULL_ROUNDS;
  }

  get #gain(): number {
    if (this.#mode === 'cycle') return CYCLE[this.#phase] ?? 1;
    return { startup: HIGH_GAIN, drain: 1 / HIGH_GAIN, 'probe-rtt': 1 }[this.#mode];
  }

  /** Of bandwidth and delay: what is in flight without a queue. */
  get #product(): number {
    return this.#delivery.max * this.#minRtt;
  }

  #checkFull(): void {
    if (this.#isFull) return;
    if (this.#delivery.max < FULL_GROWTH * this.#fullRate) this.#fullRounds += 1;
    else {
      this.#fullRate = this.#delivery.max;
      this.#fullRounds = 0;
    }
  }

  #updateMinRtt(rtt: Millis, now: Millis): void {
    const isExpired = now > this.#minRttAt + MIN_RTT_WINDOW;
    if (rtt <= this.#minRtt || isExpired) {
      this.#minRtt = rtt;
      this.#minRttAt = now;
    }
    if (isExpired && this.#mode !== 'probe-rtt') {
      this.#mode = 'probe-rtt';
      this.#probeEndsAt = Number.POSITIVE_INFINITY;
    }
    if (this.#mode !== 'probe-rtt') return;
    if (this.#probeEndsAt === Number.POSITIVE_INFINITY && this.inFlight <= MIN_IN_FLIGHT) {
      this.#probeEndsAt = now + PROBE_RTT_TIME;
    }
    if (now < this.#probeEndsAt) return;
    this.#minRttAt = now;
    this.#mode = this.#isFull ? 'cycle' : 'startup';
  }
}

/**
 * TCP BBR, version 1, with requests as packets behind the queue of every controller: paced at the maximum rate of delivery of ten rounds,
 * with at most twice that × the minimum latency of 10 s in flight, and 4 for 200 ms to measure the minimum anew. It ignores failures.
 * Simplified: a phase of the cycle lasts one minimum latency, and what TCP does for losses, policers and aggregated acknowledgements is
 * left out.
 * (Cardwell et al., "BBR: Congestion-Based Congestion Control", ACM Queue 14 (2016); Linux, net/ipv4/tcp_bbr.c at 02dc96e.)
 */
export const BBR: Controller = {
  name: 'bbr',
  makeStore: ({ policy }, _random, listen) =>
    new ControllerStore({
      policy,
      listen,
      makeMeter: () => new BbrMeter(),
      clients: new ForgetfulClients(100_000, listen),
    }),
};
