import type { Millis } from '../../core/scalars.ts';

/** The values of events that have no latency; that of an answer is its latency, ≥ 0, and of a failure −3 − its latency. */
export const RESPONDED = -1;
export const SENT = -2;
const FAILED_AT_ONCE = -3;

/** What changes the number of requests without a response, and the latencies of answers: two lists, which a backend stores. */
export class AnswerEvents {
  readonly times: Millis[] = [];
  readonly values: number[] = [];

  addFailure(at: Millis, latency: Millis): void {
    this.add(at, FAILED_AT_ONCE - Math.max(0, latency));
  }

  add(at: Millis, value: number): void {
    this.times.push(at);
    this.values.push(value);
  }
}

/** The latency of a failed request; undefined for other events. */
export function failureLatencyOf(value: number): Millis | undefined {
  return value <= FAILED_AT_ONCE ? FAILED_AT_ONCE - value : undefined;
}
