import type { ContenderName } from './contenders.ts';
import type { Measurement } from './measurement.ts';
import { METHOD } from './method.ts';

/** What one contender made of one hidden limit. */
export interface Row {
  readonly contender: ContenderName;
  /** Successes ÷ what the limit would have allowed. */
  readonly goodput: number;
  /** Answers of the upstream that were 429 or 5xx ÷ successes; Infinity for one who was locked out. */
  readonly waste: number;
  /** The same of the warm-up. */
  readonly coldWaste: number;
  /** Requests that were told 429 or 503 ÷ requests that ended. */
  readonly refused: number;
  /** Requests that ended in anything else than that or a success ÷ requests that ended. */
  readonly failed: number;
  readonly measurement: Measurement;
}

/** @param allowed what the limit would have let through in the counted time */
export function makeRow(contender: ContenderName, measurement: Measurement, allowed: number): Row {
  const { counted, cold } = measurement;
  const ended = counted.successes + counted.refused + counted.failed;
  return {
    contender,
    goodput: counted.successes / allowed,
    waste: counted.wasted / counted.successes,
    coldWaste: cold.wasted / Math.max(1, cold.successes),
    refused: counted.refused / ended,
    failed: counted.failed / ended,
    measurement,
  };
}

/** What cannot be right about a row, however well or badly a contender did: then the benchmark is broken. */
export function findFaults({ goodput, refused, failed, measurement }: Row, allowed: number): string[] {
  const { offered, counted, cold, latency } = measurement;
  const faults: string[] = [];
  const expect = (holds: boolean, fault: string): void => void (holds || faults.push(fault));
  // Where refusals count, one who does not pause is locked out for good; a short run may fall into a blackout of ours.
  expect(counted.successes + cold.successes > 0, 'nothing succeeded');
  expect([goodput, refused, failed].every(Number.isFinite), 'a figure is no number');
  const intended = METHOD.overload * allowed;
  // Poisson's standard deviation, six times.
  expect(Math.abs(offered - intended) <= 6 * Math.sqrt(intended), `offered ${offered}, not ${intended}`);
  expect(failed <= 0.01, `${counted.failed} requests failed: ${JSON.stringify(measurement.statuses)}`);
  for (const { sends, accepted, wasted } of [counted, cold]) {
    expect(sends === accepted + wasted, `${sends} sends are not ${accepted} accepted and ${wasted} wasted`);
  }
  const successes = counted.successes + cold.successes;
  const accepted = counted.accepted + cold.accepted;
  expect(successes <= accepted, `${successes} successes of ${accepted} that the upstream let pass`);
  expect(counted.successes === 0 || (latency.p50 > 0 && latency.p50 <= latency.p99), 'latencies out of order');
  return faults;
}
