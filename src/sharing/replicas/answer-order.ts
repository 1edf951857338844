import type { LocalMeter } from '../../core/limits/local-meter.ts';
import { learnLatency } from '../../core/rate/late-knowledge.ts';
import type { Millis } from '../../core/scalars.ts';
import type { AppliedDecrease } from '../protocol/authoritative-limit.ts';
import { AnswerEvents, failureLatencyOf, isAbandonment, RESPONDED, SENT } from './answer-events.ts';

/** Under a limit on requests in flight, replicas report responses at once: how late these reports are at most. */
const URGENT_REPORT_DELAY: Millis = 20;
/** At a higher rate, events are learned from before all replicas have reported: this bounds the size of the stored limit. */
const MAX_PENDING = 1500;

/**
 * The responses of all replicas in the order of their times. A limiter that learns from latency counts responses and the requests
 * that wait for one; reports that arrive late and out of order would show a throughput that varies with the calls. So an event is
 * learned from once all replicas have reported its time.
 */
export class AnswerOrder {
  #pending = new AnswerEvents();
  /** Requests without a response before the first pending event. */
  #unanswered = 0;
  #learnedUntil: Millis = Number.NEGATIVE_INFINITY;

  /**
   * Adds the events of one report, in order, and learns from those that are old enough.
   * @param reportDelay after this time, all replicas have reported
   * @returns the decrease, if the responses show a queue at the upstream
   */
  learn(reported: AnswerEvents, meter: LocalMeter, reportDelay: Millis, now: Millis): AppliedDecrease | undefined {
    const from = meter.rate(now);
    const delay = meter.concurrencyLimit === undefined ? reportDelay : Math.min(reportDelay, URGENT_REPORT_DELAY);
    const hasQueue = meter.countsResponses ? this.#merge(reported, meter, now - delay) : this.#discard(meter);
    return hasQueue ? { cause: 'latency', from, to: meter.rate(now), sentAt: now } : undefined;
  }

  #discard(meter: LocalMeter): boolean {
    if (this.#pending.times.length > 0) this.#pending = new AnswerEvents();
    this.#unanswered = meter.unanswered;
    return false;
  }

  #merge({ times, values }: AnswerEvents, meter: LocalMeter, until: Millis): boolean {
    const { times: pendingTimes, values: pendingValues } = this.#pending;
    const pending = new AnswerEvents();
    let excess = pendingTimes.length + times.length - MAX_PENDING;
    let pendingChange = 0;
    let hasQueue = false;
    let [i, j] = [0, 0];
    while (i < pendingTimes.length || j < times.length) {
      const isReported = (times[j] ?? Number.POSITIVE_INFINITY) < (pendingTimes[i] ?? Number.POSITIVE_INFINITY);
      const at = (isReported ? times[j] : pendingTimes[i]) ?? until;
      const value = (isReported ? values[j] : pendingValues[i]) ?? 0;
      if (isReported) j += 1;
      else i += 1;
      const change = value === SENT ? 1 : value === RESPONDED ? -1 : 0;
      if (at > until && excess <= 0) {
        pending.add(at, value);
        pendingChange += change;
        continue;
      }
      excess -= 1;
      this.#learnedUntil = Math.max(this.#learnedUntil, at);
      this.#unanswered += change;
      const failedAfter = failureLatencyOf(value);
      const latency = failedAfter ?? value;
      if (latency < 0) continue;
      const unanswered = Math.max(1, this.#unanswered);
      const hasFailed = failedAfter !== undefined;
      const isAbandoned = isAbandonment(value);
      const ended = { latency, unanswered, at: this.#learnedUntil, hasFailed, isAbandoned };
      if (learnLatency(meter.adaptiveRate, ended)) hasQueue = true;
    }
    this.#pending = pending;
    // The count of the limit is corrected by what replicas report, and without those that have gone.
    this.#unanswered = meter.unanswered - pendingChange;
    return hasQueue;
  }
}
