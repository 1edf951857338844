import type { DeliveryMessage } from '../../core/delivery/delivery.ts';
import { decodeTextRecord, encodeTextRecord } from './text-record.ts';

/** Method, target and peer precede the headers; in a keyed message also what names its client, and the key for the upstream. */
const FIXED_TEXTS = { plain: 3, keyed: 5 } as const;

/** The first byte of a message that keeps the name of its client. Versions that know no such messages cannot send them. */
const KEYED = 2;

export function encodeDeliveryMessage(message: DeliveryMessage): Buffer {
  const { method, target, headers, body, peer, keyOwner, upstreamKey = '' } = message;
  if (keyOwner === undefined) return encodeTextRecord({ texts: [method, target, peer, ...headers], bytes: body });
  return encodeTextRecord({ texts: [method, target, peer, keyOwner, upstreamKey, ...headers], bytes: body }, KEYED);
}

/** Undefined if the bytes are no message of a version that is known here. */
export function decodeDeliveryMessage(bytes: Buffer): DeliveryMessage | undefined {
  if (bytes[0] === KEYED) return decodeKeyed(bytes);
  const record = decodeTextRecord(bytes, FIXED_TEXTS.plain);
  if (record === undefined) return undefined;
  const [method = '', target = '', peer = '', ...headers] = record.texts;
  return { method, target, peer, headers, body: record.bytes };
}

function decodeKeyed(bytes: Buffer): DeliveryMessage | undefined {
  const record = decodeTextRecord(bytes, FIXED_TEXTS.keyed, KEYED);
  if (record === undefined) return undefined;
  const [method = '', target = '', peer = '', keyOwner = '', upstreamKey = '', ...headers] = record.texts;
  const message = { method, target, peer, headers, body: record.bytes, keyOwner };
  return upstreamKey === '' ? message : { ...message, upstreamKey };
}
