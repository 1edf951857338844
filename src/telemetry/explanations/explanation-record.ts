import type { RequestRecord } from '../../core/events/request-record.ts';
import type { Millis } from '../../core/scalars.ts';
import type { RetryPolicy } from '../../core/retry/retry-policy.ts';
import type { LastAttempt, TraceStep, ObservedExchange } from '../../core/exchange/exchange-observer.ts';
import { detachPath } from '../history/detach-path.ts';
import type { SizedItem } from '../history/byte-bounded-ring.ts';

/** The recorded data of a request, from which its explanation is built on demand. */
export interface ExplanationRecord extends SizedItem {
  /** Its number among all recorded requests, from 1. */
  readonly number: number;
  /** Its arrival, in milliseconds of the epoch. */
  readonly arrivedAt: Millis;
  readonly record: RequestRecord;
  /** How the client was identified; undefined if the request never became an exchange. */
  readonly identifiedBy: string | undefined;
  readonly retryPolicy: RetryPolicy | undefined;
  /** Where its idempotency key is, as far as is known; undefined if it has none. */
  readonly keyLocation: string | undefined;
  readonly last: LastAttempt | undefined;
  readonly steps: readonly TraceStep[] | undefined;
}

/** The origin of the exchange's clock, in milliseconds of the epoch. */
export function clockOriginOf({ arrivedAt, record }: Pick<ExplanationRecord, 'arrivedAt' | 'record'>): Millis {
  return arrivedAt - record.at;
}

/** Heap use in Node 24, rounded up: test/unit/telemetry/explanation-recorder.test.ts compares it with the actual use. */
const RECORD_BYTES = { base: 900, step: 600 } as const;

/** @param exchange undefined if the request never became an exchange */
export function createExplanationRecord(
  number: number,
  exchange: ObservedExchange | undefined,
  record: RequestRecord,
  arrivedAt: Millis,
): ExplanationRecord {
  const path = detachPath(record.path);
  const steps = exchange?.steps;
  const description = exchange?.describe();
  return {
    number,
    arrivedAt,
    record: { ...record, path },
    identifiedBy: description?.identifiedBy,
    retryPolicy: description?.retryPolicy,
    keyLocation: description?.key,
    last: exchange?.lastAttempt(),
    steps,
    sizeBytes:
      RECORD_BYTES.base +
      2 * path.length +
      (record.clientName?.length ?? 0) +
      (record.xRequestId?.length ?? 0) +
      RECORD_BYTES.step * (steps?.length ?? 0),
  };
}
