import type { Millis } from '../../core/scalars.ts';

/** A UUID of version 7 (RFC 9562 §5.7): ids are in the order of time. @param now wall clock @param randomBytes of this length */
export function makeDeliveryId(now: Millis, randomBytes: (length: number) => Buffer): string {
  const bytes = Buffer.alloc(16);
  bytes.writeUIntBE(Math.trunc(now), 0, 6);
  randomBytes(10).copy(bytes, 6);
  bytes.writeUInt8(0x70 | (bytes.readUInt8(6) & 0x0f), 6);
  bytes.writeUInt8(0x80 | (bytes.readUInt8(8) & 0x3f), 8);
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
