import type { DeliveryMessage } from '../../core/delivery/delivery.ts';
import { decodeTextRecord, encodeTextRecord } from './text-record.ts';

/** Method, target and peer precede the headers, and then the owner of the key, if there is one: headers are an even number of texts. */
const FIXED_TEXTS = 3;

export function encodeDeliveryMessage({ method, target, headers, body, peer, keyOwner }: DeliveryMessage): Buffer {
  return encodeTextRecord({
    texts: [method, target, peer, ...(keyOwner === undefined ? [] : [keyOwner]), ...headers],
    bytes: body,
  });
}

/** Undefined if the bytes are no message of this version. */
export function decodeDeliveryMessage(bytes: Buffer): DeliveryMessage | undefined {
  const record = decodeTextRecord(bytes, FIXED_TEXTS);
  if (record === undefined) return undefined;
  const [method = '', target = '', peer = '', ...rest] = record.texts;
  const hasOwner = rest.length % 2 === 1;
  const headers = hasOwner ? rest.slice(1) : rest;
  const message = { method, target, peer, headers, body: record.bytes };
  return hasOwner ? { ...message, keyOwner: rest[0] } : message;
}
