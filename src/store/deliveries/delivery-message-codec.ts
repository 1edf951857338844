import type { DeliveryMessage } from '../../core/delivery/delivery.ts';
import { decodeTextRecord, encodeTextRecord } from './text-record.ts';

/** Method, target and peer precede the headers. */
const FIXED_TEXTS = 3;

export function encodeDeliveryMessage({ method, target, headers, body, peer }: DeliveryMessage): Buffer {
  return encodeTextRecord({ texts: [method, target, peer, ...headers], bytes: body });
}

/** Undefined if the bytes are no message of this version. */
export function decodeDeliveryMessage(bytes: Buffer): DeliveryMessage | undefined {
  const record = decodeTextRecord(bytes, FIXED_TEXTS);
  if (record === undefined) return undefined;
  const [method = '', target = '', peer = '', ...headers] = record.texts;
  return { method, target, peer, headers, body: record.bytes };
}
