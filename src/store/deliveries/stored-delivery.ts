import type { SQLOutputValue } from 'node:sqlite';
import type { Delivery, DeliveryKind } from '../../core/delivery/delivery.ts';
import type { Millis } from '../../core/scalars.ts';
import { ALL_CODES, KIND_CODES, type StateCode, STATE_CODES } from './delivery-tables.ts';
import type { DeliveryTimes } from './delivery-times.ts';

/** A row, as it is stored. */
export interface StoredDelivery {
  readonly number: number;
  readonly code: StateCode;
  /** On the wall clock: when it is due, or has ended. */
  readonly until: Millis;
  /** Of its sealed message and result. */
  readonly size: number;
  /** When it was accepted, or restarted, as times are stored. */
  readonly waitsSince: Millis;
  readonly delivery: Omit<Delivery, 'state'>;
}

/** Undefined if there is no row. */
export function readStoredDelivery(
  row: Record<string, SQLOutputValue> | undefined,
  times: DeliveryTimes,
): StoredDelivery | undefined {
  if (row === undefined) return undefined;
  const wall = (column: string): Millis => times.toWall(Number(row[column]));
  const text = (column: string): string | undefined => (row[column] === null ? undefined : String(row[column]));
  const status = row['attempt_status'];
  const lastAttempt =
    row['attempt_at'] === null
      ? undefined
      : {
          at: wall('attempt_at'),
          took: Number(row['attempt_took']),
          status: status === null ? undefined : Number(status),
          reason: text('attempt_reason'),
        };
  const delivery = {
    ...{
      id: String(row['id']),
      kind: toKind(row['kind']),
      route: String(row['route']),
      upstream: String(row['upstream']),
    },
    ...{ acceptedAt: wall('accepted_at'), owner: String(row['owner']), sender: String(row['sender']) },
    ...{ eventId: text('event_id'), orderKey: text('order_key'), attempts: Number(row['attempts']), lastAttempt },
    startedAt: row['started_at'] === null ? undefined : wall('started_at'),
  };
  const [number, size, waitsSince] = [Number(row['number']), Number(row['size']), Number(row['waits_since'])];
  return { number, code: toCode(row['state']), until: wall('until'), size, waitsSince, delivery };
}

/** One that means nothing counts as dead. */
export function toCode(value: SQLOutputValue | undefined): StateCode {
  return ALL_CODES.find((code) => code === value) ?? STATE_CODES.dead;
}

function toKind(value: SQLOutputValue | undefined): DeliveryKind {
  return value === KIND_CODES.write ? 'write' : 'message';
}

export function toBuffer(bytes: SQLOutputValue | undefined): Buffer | undefined {
  return bytes instanceof Uint8Array ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength) : undefined;
}
