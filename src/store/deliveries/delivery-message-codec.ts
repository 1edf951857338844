import type { DeliveryMessage } from '../../core/delivery/delivery.ts';
import { NO_OWNER } from '../../core/idempotency/key-owner.ts';
import { decodeTextRecord, encodeTextRecord } from './text-record.ts';

/** Method, target and peer precede the headers; in a keyed message also what names its client, its kind, and the key for the upstream. */
const FIXED_TEXTS = { plain: 3, keyed: 6 } as const;

/** The first byte of a message that keeps the name of its client or its key. Versions that know no such messages cannot send them. */
const KEYED = 2;

export function encodeDeliveryMessage(message: DeliveryMessage): Buffer {
  const { method, target, headers, body, peer, keyOwner, upstreamKey = '' } = message;
  const fixed = [method, target, peer];
  const isPlain = keyOwner === undefined && upstreamKey === '';
  if (isPlain) return encodeTextRecord({ texts: [...fixed, ...headers], bytes: body });
  const { name, kind } = keyOwner ?? NO_OWNER;
  return encodeTextRecord({ texts: [...fixed, name, kind, upstreamKey, ...headers], bytes: body }, KEYED);
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
  const [method = '', target = '', peer = '', name = '', kind = '', upstreamKey = '', ...headers] = record.texts;
  const keyOwner = name === '' ? undefined : { name, kind };
  return { method, target, peer, headers, body: record.bytes, keyOwner, upstreamKey: upstreamKey || undefined };
}
