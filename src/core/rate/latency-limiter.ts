import { LATENCY_SPAN, LatencyTrend } from './latency-trend.ts';
import { isQueueSuspected } from './queue-suspicion.ts';
import { ThroughputMeasurement } from './throughput-measurement.ts';
import type { Millis, PerSecond } from '../scalars.ts';

/** The share of requests without an answer from which the limit is too high. */
const MAX_TIMEOUT_SHARE = 0.1;
const TIMEOUT_CUT = 0.7;
/** With fewer answers among the requests that end, a test is repeated with half as many in flight. */
const MIN_ANSWERED_SHARE = 0.67;
const TIMEOUT_RECOVERY = 1.1;
/** The search for the lowest latency begins after this time, or after `LATENCY_SPAN` answers. */
const SETTLING_TIME: Millis = 1000;
/** Answers in a measurement without a limit. */
const WATCHED = 16;
const MIN_WATCHED: Millis = 100;
/** Answers are counted only while the requests in flight ÷ the limit are at least this. */
const MIN_USE = 0.85;
/** A queue is certain if the knee is below this share of the requests that were in flight. */
const MAX_KNEE_SHARE = 0.75;
/** The limit ÷ the knee. At 2, a request waits at the upstream for as long as it is served. */
const HEADROOM = 2;
/** The requests in flight while the knee is measured, ÷ the knee. */
const REDUCTION = 0.7;
/** With this share of the answers, the upstream is still fully used. */
const FULL_SHARE = 0.85;
const CERTAIN_INCREASE = 1.5; // times the known throughput is no coincidence: workers were added, or there was no queue
/** The weight of the last measurement in the knee, in logarithms. */
const GAIN = 0.5;
/** A change of the knee by this factor is measured again soon. */
const LARGE_CHANGE = 1.25;
/** Time at the limit ÷ the time of the test before it; the short one after a large change. */
const FULL_TIME = 12;
const SHORT_FULL_TIME = 3;
/** The first and the longest pause after a test that found no queue ÷ the time of the test. */
const FIRST_PAUSE = 2;
const MAX_PAUSE = 64;
const MIN_PAUSE: Millis = 2000;
const MAX_TEST: Millis = 15_000;
/** There is a test only if the number in flight can fall to `MAX_TEST_SHARE` of it within this time. */
const MAX_FALL: Millis = 5000;
const MAX_TEST_SHARE = 0.7;
const MIN_DRAIN: Millis = 100;
/** Requests sent for each answer while the number in flight falls to the limit; above 0, because the test may be a false alarm. */
const SENT_WHILE_FALLING = 0.25;

type LatencyLimiterMode = 'watching' | 'searching' | 'full' | 'reduced';

/**
 * Limits the requests in flight at an upstream that does not reject but becomes slow. Below the knee, answers a second are
 * proportional to the requests in flight; above it, more in flight bring no more answers, only later ones (Little 1961; Kleinrock,
 * ICC 1979). Growing latency may have other causes, so it only triggers a test: with fewer requests in flight, an upstream with a
 * queue gives as many answers.
 *
 *     watching ─latency doubled─► searching ─as many answers─► searching, with half as many in flight
 *        ▲───────────fewer answers, no queue──┘      └─fewer answers─► full ⇄ reduced
 */
export class LatencyLimiter {
  #mode: LatencyLimiterMode = 'watching';
  #limit = Number.POSITIVE_INFINITY;
  /** While the number in flight falls to the limit: it may be as large as this. */
  #allowance = Number.NEGATIVE_INFINITY;
  /** The requests in flight that use the upstream fully; while searching, an upper bound. */
  #knee = Number.POSITIVE_INFINITY;
  /** Answers a second at or above the knee. */
  #throughput: PerSecond = Number.POSITIVE_INFINITY;
  #hasQueue = false;
  /** With more in flight, too many requests had no answer in time. */
  #most = Number.POSITIVE_INFINITY;
  readonly #latency = new LatencyTrend();
  #inFlight = 0;
  #modeSince: Millis = 0;
  /** When the number in flight must have fallen to the limit: twice the time that this takes at the rate of answers before. */
  #reachedBy: Millis = 0;
  /** Undefined while the limit is not in use. */
  #measurement: ThroughputMeasurement | undefined;
  #before: ThroughputMeasurement | undefined;
  #nextTestAt: Millis = Number.NEGATIVE_INFINITY;
  /** Pause after a test that finds no queue ÷ the time of the test. */
  #pause = FIRST_PAUSE;

  /** Infinity while the number in flight is not limited. */
  get limit(): number {
    return Math.max(this.#limit, Math.floor(this.#allowance));
  }

  /** Answers a second of the upstream in full use; Infinity while no queue was found. */
  get throughput(): PerSecond {
    return this.#hasQueue ? this.#throughput : Number.POSITIVE_INFINITY;
  }

  /**
   * Returns whether this answer makes it certain that the upstream has a queue.
   * @param inFlight requests in flight before it, its own included @param isRejecting see `isQueueSuspected`
   */
  onAnswer(latency: Millis, inFlight: number, now: Millis, isRejecting: boolean): boolean {
    if (this.#latency.answers === 0) this.#modeSince = now;
    this.#latency.onAnswer(latency);
    this.#inFlight = inFlight;
    this.#allowance -= 1 - SENT_WHILE_FALLING;
    const hadQueue = this.#hasQueue;
    if (this.#mode === 'watching') this.#watch(inFlight, now, isRejecting);
    else this.#measure(inFlight, now);
    return this.#hasQueue && !hadQueue;
  }

  /** A request was given up, or failed, after this time. If that is long, the upstream may be working on it still. */
  onTimeout(latency: Millis, inFlight: number, now: Millis, isRejecting: boolean, isAbandoned = false): void {
    if (!(isAbandoned ? this.#latency.onAbandoned(latency, inFlight) : this.#latency.isSlow(latency))) return;
    const watched = this.#mode === 'watching' ? (this.#measurement ??= new ThroughputMeasurement(now)) : undefined;
    (watched ?? this.#measurement)?.onTimeout(inFlight, now);
    // Requests from before this limit do not show that it is too high, nor do those that waited behind them at the upstream.
    const isEarlier = watched === undefined && now - latency < this.#modeSince + this.#latency.mean;
    if (isEarlier && !isAbandoned) return;
    this.#inFlight = inFlight;
    this.#allowance -= 1 - SENT_WHILE_FALLING;
    if (isEarlier && !this.#latency.isCollapsed) return;
    this.#latency.onTimeout(latency);
    if (watched !== undefined) this.#endWatch(watched, now, isRejecting);
    else if (this.#latency.timeoutShare > MAX_TIMEOUT_SHARE) this.#onTooManyTimeouts(now);
  }

  #onTooManyTimeouts(now: Millis): void {
    if (this.#mode === 'full' && this.#limit > this.#knee) {
      this.#most = Math.max(this.#knee, TIMEOUT_CUT * this.#limit);
      this.#enter('full', this.#limit, now);
    } else this.#enter('searching', this.#limit / 2, now);
  }

  /** Ends a test that cannot be completed; but while nothing is answered at all, more requests would only be abandoned too. */
  advance(inFlight: number, now: Millis): void {
    if (this.#mode === 'watching' || this.#mode === 'full' || this.#latency.isCollapsed) return;
    const isReached = inFlight <= this.#limit;
    // Some requests take much longer than others, or the limit is not enforced, as in observe mode; or there are too few requests.
    if (!isReached && now > this.#reachedBy) this.#forget(now);
    else if (isReached && now > this.#modeSince + this.#longestTest()) this.#giveUp(now);
  }

  #measure(inFlight: number, now: Millis): void {
    // In a test, fewer in flight say as much: a response that is not delayed shows the knee too (Little's law).
    if (inFlight > this.#limit || (this.#mode === 'full' && inFlight < MIN_USE * this.#limit)) {
      this.#measurement = undefined;
      return;
    }
    this.#measurement ??= new ThroughputMeasurement(now + Math.min(this.#latency.mean, 2 * this.#latency.base));
    this.#measurement.onAnswer(inFlight, now);
    if (this.#measurement.count < this.#enough()) return;
    if (this.#mode === 'full') this.#endFull(this.#measurement, now);
    else this.#endTest(this.#measurement, now);
  }

  #watch(inFlight: number, now: Millis, isRejecting: boolean): void {
    this.#measurement ??= new ThroughputMeasurement(now);
    this.#measurement.onAnswer(inFlight, now);
    this.#endWatch(this.#measurement, now, isRejecting);
  }

  #endWatch(last: ThroughputMeasurement, now: Millis, isRejecting: boolean): void {
    if (last.ends < WATCHED || last.duration < MIN_WATCHED) return;
    const before = this.#before;
    this.#before = last;
    this.#measurement = undefined;
    this.#latency.updateBase(this.#latency.answers < LATENCY_SPAN && now < this.#modeSince + SETTLING_TIME);
    if (now < this.#nextTestAt || !isQueueSuspected(this.#latency, last, isRejecting)) return;
    // The larger rate: when latency begins to grow, no answers arrive for a moment.
    this.#throughput = Math.max(last.rate, (last.rate + (before?.rate ?? 0)) / 2);
    this.#knee = last.inFlight;
    const needed = (1.5 * this.#throughput * this.#latency.base) / 1000;
    const reachable = this.#inFlight - (1 - SENT_WHILE_FALLING) * (last.endRate / 1000) * MAX_FALL;
    const limit = Math.max(reachable, Math.min(last.inFlight / 2, needed));
    if (limit > MAX_TEST_SHARE * last.inFlight) return;
    this.#enter('searching', limit, now, last.endRate);
  }

  #endFull(full: ThroughputMeasurement, now: Millis): void {
    // The higher of two rates: a pause of the upstream does not show a lower capacity.
    const increase = full.rate / this.#throughput;
    this.#throughput = Math.max(full.rate, this.#before?.rate ?? 0);
    if (increase > CERTAIN_INCREASE) {
      // Below the knee, answers a second are proportional to the requests in flight, so it is at least as much larger.
      this.#knee *= increase;
      return this.#enter('full', HEADROOM * this.#knee, now);
    }
    this.#before = full;
    this.#measurement = undefined;
    this.#most *= TIMEOUT_RECOVERY;
    if (now >= this.#nextTestAt) this.#enter('reduced', REDUCTION * this.#knee, now);
  }

  #endTest(test: ThroughputMeasurement, now: Millis): void {
    const { inFlight, rate, count, ends } = test;
    if (count < MIN_ANSWERED_SHARE * ends && this.#limit > 1) return this.#enter('searching', this.#limit / 2, now);
    const share = Math.min(1, rate / this.#throughput);
    const measured = inFlight / share;
    if (!this.#hasQueue && measured > MAX_KNEE_SHARE * this.#knee) {
      this.#latency.raiseBase();
      return this.#giveUp(now);
    }
    this.#hasQueue = true;
    this.#throughput = Math.max(this.#throughput, rate);
    const wasSearching = this.#mode === 'searching';
    const before = this.#knee;
    if (share > FULL_SHARE && inFlight > 1) {
      this.#knee = measured;
      return this.#enter('searching', inFlight / 2, now);
    }
    this.#knee = wasSearching ? measured : before * (measured / before) ** GAIN;
    const change = Math.max(this.#knee / before, before / this.#knee);
    this.#nextTestAt = now + (change > LARGE_CHANGE ? SHORT_FULL_TIME : FULL_TIME) * (now - this.#modeSince);
    this.#before = undefined;
    this.#enter('full', Math.max(2, HEADROOM * this.#knee), now);
  }

  #forget(now: Millis): void {
    this.#hasQueue = false;
    this.#giveUp(now);
  }

  /** Ends a test: it found no queue, or there are too few requests for it. */
  #giveUp(now: Millis): void {
    this.#nextTestAt = now + Math.max(MIN_PAUSE, this.#pause * (now - this.#modeSince)); // delayed requests are sent all at once
    this.#pause = Math.min(MAX_PAUSE, 2 * this.#pause);
    if (this.#hasQueue) return this.#enter('full', Math.max(2, HEADROOM * this.#knee), now);
    this.#before = undefined;
    this.#enter('watching', Number.POSITIVE_INFINITY, now);
  }

  /** @param rate requests that end each second, until the number in flight has fallen to the limit */
  #enter(mode: LatencyLimiterMode, limit: number, now: Millis, rate: PerSecond = this.#throughput): void {
    this.#mode = mode;
    this.#limit = Math.max(1, Math.round(Math.min(limit, this.#most)));
    const excess = Math.max(0, this.#inFlight - this.#limit);
    this.#allowance = this.#latency.isCollapsed ? this.#limit : this.#inFlight;
    this.#reachedBy = now + Math.min(MAX_TEST, MIN_DRAIN + (2000 * excess) / (1 - SENT_WHILE_FALLING) / rate);
    this.#modeSince = now;
    this.#measurement = undefined;
    this.#latency.forgetTimeouts();
  }

  /** Answers that a measurement needs: more than are in flight, because the first ones belong to earlier requests. */
  #enough(): number {
    return this.#hasQueue ? Math.min(128, Math.max(12, 3 * this.#limit)) : Math.min(64, Math.max(12, 2 * this.#limit));
  }

  /** The longest time of a test with enough requests; those in flight must be answered first. */
  #longestTest(): Millis {
    return Math.min(MAX_TEST, 1000 + (4000 * (this.#knee + this.#enough())) / this.#throughput);
  }
}
