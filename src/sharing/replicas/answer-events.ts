import type { Millis } from '../../core/scalars.ts';

/**
 * The values of events that have no latency; that of an answer is its latency, ≥ 0, of a failure −3 − its latency, and of an abandoned
 * request −10¹² − its latency, because no failure takes 30 years.
 */
export const RESPONDED = -1;
export const SENT = -2;
const FAILED_AT_ONCE = -3;
const ABANDONED_AT_ONCE = -1_000_000_000_000;

/** What changes the number of requests without a response, and the latencies of answers: two lists, which a backend stores. */
export class AnswerEvents {
  readonly times: Millis[] = [];
  readonly values: number[] = [];

  addFailure(at: Millis, latency: Millis, isAbandoned = false): void {
    this.add(at, (isAbandoned ? ABANDONED_AT_ONCE : FAILED_AT_ONCE) - Math.max(0, latency));
  }

  add(at: Millis, value: number): void {
    this.times.push(at);
    this.values.push(value);
  }
}

/** Whether the event is a request that its client abandoned at its timeout. */
export function isAbandonment(value: number): boolean {
  return value <= ABANDONED_AT_ONCE;
}

/** The latency of a failed or abandoned request; undefined for other events. */
export function failureLatencyOf(value: number): Millis | undefined {
  if (isAbandonment(value)) return ABANDONED_AT_ONCE - value;
  return value <= FAILED_AT_ONCE ? FAILED_AT_ONCE - value : undefined;
}
