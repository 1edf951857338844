import type { GoodputContenderName } from './contenders.ts';
import type { Measurement } from './measurement.ts';
import { METHOD } from './method.ts';

/** The results of one contender with one hidden limit. */
export interface GoodputRow {
  readonly contender: GoodputContenderName;
  /** Successes ÷ requests that the limit would have allowed. */
  readonly goodput: number;
  /** 429 and 5xx responses of the upstream ÷ successes; Infinity without successes. */
  readonly waste: number;
  /** Waste during the warm-up. */
  readonly coldWaste: number;
  /** Requests answered with 429 or 503 ÷ ended requests. */
  readonly refused: number;
  /** Requests with any other failure ÷ ended requests. */
  readonly failed: number;
  readonly measurement: Measurement;
}

/** @param allowed requests that the limit would have allowed in the counted time */
export function makeRow(contender: GoodputContenderName, measurement: Measurement, allowed: number): GoodputRow {
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

/** Returns implausible figures of a row, which show that the benchmark is broken. */
export function findFaults({ goodput, refused, failed, measurement }: GoodputRow, allowed: number): string[] {
  const { offered, counted, cold, latency } = measurement;
  const faults: string[] = [];
  const expect = (holds: boolean, fault: string): void => void (holds || faults.push(fault));
  // If the limit counts rejected requests, a contender that never pauses is locked out; a short run may be one blackout.
  expect(counted.successes + cold.successes > 0, 'nothing succeeded');
  expect([goodput, refused, failed].every(Number.isFinite), 'a figure is no number');
  const intended = METHOD.overload * allowed;
  // Six standard deviations of a Poisson distribution.
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
