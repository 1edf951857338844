import type { DeliveryResult } from '../../core/delivery/delivery.ts';
import { decodeTextRecord, encodeTextRecord } from './text-record.ts';

/** The status, and whether there is a body, precede the headers. */
const FIXED_TEXTS = 2;
const WITH_BODY = 'body';
const EMPTY = Buffer.alloc(0);

export function encodeDeliveryResult({ status, headers, body }: DeliveryResult): Buffer {
  const texts = [String(status), body === undefined ? '' : WITH_BODY, ...headers];
  return encodeTextRecord({ texts, bytes: body ?? EMPTY });
}

/** Undefined if the bytes are no result of this version. */
export function decodeDeliveryResult(bytes: Buffer): DeliveryResult | undefined {
  const record = decodeTextRecord(bytes, FIXED_TEXTS);
  if (record === undefined) return undefined;
  const [status, body, ...headers] = record.texts;
  return { status: Number(status), headers, body: body === WITH_BODY ? record.bytes : undefined };
}
