import type { Measurement } from '../measurement.ts';
import { METHOD } from '../method.ts';
import type { ServiceContenderName } from './service-contenders.ts';
import type { ServiceFigures } from './service-goals.ts';

/** The results of one contender in front of a service. */
export interface ServiceRow extends ServiceFigures {
  readonly contender: ServiceContenderName;
  /** Responses within the clients' timeout ÷ requests that the service can work on. */
  readonly goodput: number;
  /** How long requests waited for a worker, in ms, abandoned ones included. NaN if the service worked on none. */
  readonly waitP50: number;
  readonly waitP99: number;
  /** Requests that the service worked on without a response in time ÷ requests that it worked on; NaN without any. */
  readonly abandoned: number;
  /** Requests answered with 429 or 503 ÷ ended requests. */
  readonly refused: number;
  /** Requests with any other failure, most of them timeouts, ÷ ended requests. */
  readonly failed: number;
  readonly measurement: Measurement;
}

/** @param capacity requests that the service can work on in the counted time */
export function makeServiceRow(
  contender: ServiceContenderName,
  measurement: Measurement,
  capacity: number,
): ServiceRow {
  const { counted, service } = measurement;
  if (service === undefined) throw new Error('the load generator did not read the waits at the service');
  const { worked, wait } = service;
  const ended = counted.successes + counted.refused + counted.failed;
  return {
    contender,
    goodput: counted.successes / capacity,
    waitP50: worked > 0 ? wait.p50 : Number.NaN,
    waitP99: worked > 0 ? wait.p99 : Number.NaN,
    // A response may arrive a moment after the work was counted, so at most one or two requests are missing on either side.
    abandoned: Math.max(0, (worked - counted.successes) / worked),
    refused: counted.refused / ended,
    failed: counted.failed / ended,
    measurement,
  };
}

/** 0 is a client's timeout; Tidegate answers 502 before it sends what could not be answered in time. */
const EXPECTED_STATUSES: ReadonlySet<string> = new Set(['0', '200', '429', '502', '503', '504']);

/** Returns implausible figures of a row, which show that the benchmark is broken. */
export function findServiceFaults({ measurement }: ServiceRow, capacity: number): string[] {
  const { offered, counted, cold, statuses, service } = measurement;
  const faults: string[] = [];
  const expect = (holds: boolean, fault: string): void => void (holds || faults.push(fault));
  expect(counted.successes + cold.successes > 0, 'nothing succeeded');
  expect((service?.worked ?? 0) > 0, 'the service worked on nothing');
  const intended = METHOD.overload * capacity;
  // Six standard deviations of a Poisson distribution.
  expect(Math.abs(offered - intended) <= 6 * Math.sqrt(intended), `offered ${offered}, not ${intended}`);
  expect(counted.wasted + cold.wasted === 0, 'the service rejected requests');
  const successes = counted.successes + cold.successes;
  const accepted = counted.accepted + cold.accepted;
  expect(successes <= accepted, `${successes} successes of ${accepted} that the service received`);
  const others = Object.keys(statuses).filter((status) => !EXPECTED_STATUSES.has(status));
  expect(others.length === 0, `unexpected statuses: ${JSON.stringify(statuses)}`);
  return faults;
}
