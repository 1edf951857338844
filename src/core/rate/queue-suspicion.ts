import { type LatencyTrend, USUAL_SPAN } from './latency-trend.ts';
import type { ThroughputMeasurement } from './throughput-measurement.ts';

/** Growth of latency, as a factor, that triggers a test. */
const SUSPICIOUS_GROWTH = 2;
/** The same at an upstream that rejects what it cannot serve: its rate is limited already, and a queue is less likely. */
const GROWTH_DESPITE_REJECTIONS = 4;
/** The share of requests without an answer that triggers a test. */
const SUSPICIOUS_TIMEOUT_SHARE = 0.25;
/** Fewer requests in flight show no queue: a service without one may need as many. */
const MIN_IN_FLIGHT = 3;
/** At the start, growth of latency that `MANY_IN_FLIGHT` requests show before they are answered. */
const CERTAIN_GROWTH = 3;
const MANY_IN_FLIGHT = 16;

/**
 * Whether the upstream may have a queue, so that a test is worth its cost: latency has grown, or will have grown once the requests in
 * flight are answered (Little's law), or many requests get no answer in time.
 * @param isRejecting the upstream has rejected requests recently
 */
export function isQueueSuspected(latency: LatencyTrend, last: ThroughputMeasurement, isRejecting: boolean): boolean {
  const { inFlight, rate } = last;
  if (latency.timeoutShare > SUSPICIOUS_TIMEOUT_SHARE && inFlight >= MIN_IN_FLIGHT) return true;
  const growth = isRejecting ? GROWTH_DESPITE_REJECTIONS : SUSPICIOUS_GROWTH;
  if (latency.hasGrown(growth) && inFlight >= MIN_IN_FLIGHT) return true;
  const isCold = latency.answers < USUAL_SPAN;
  return (
    !isRejecting && isCold && inFlight >= MANY_IN_FLIGHT && (1000 * inFlight) / rate >= CERTAIN_GROWTH * latency.base
  );
}
