import { createHmac } from 'node:crypto';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodeSignature } from '../../src/http/webhooks/signature-text.ts';
import type { SignatureScheme } from '../../src/http/webhooks/signature-types.ts';
import { standardWebhooksScheme } from '../../src/http/webhooks/standard-webhooks-signature.ts';
import { stripeScheme } from '../../src/http/webhooks/stripe-signature.ts';
import { verifySignature } from '../../src/http/webhooks/verify-signature.ts';

const TOLERANCE = 300_000;
const KEY = Buffer.alloc(24, 7);
const STRIPE = stripeScheme(['whsec_x'], TOLERANCE);
const STANDARD = standardWebhooksScheme([`whsec_${KEY.toString('base64')}`], TOLERANCE);

const body = fc.uint8Array({ maxLength: 200 });
const timestamp = fc.integer({ min: 1_000_000_000, max: 2_000_000_000 });
const id = fc.stringMatching(/^msg_[A-Za-z0-9]{1,24}$/);

function digest(key: string | Buffer, before: string, bytes: Uint8Array, encoding: 'hex' | 'base64'): string {
  return createHmac('sha256', key).update(before).update(bytes).digest(encoding);
}

function isValid(scheme: SignatureScheme, headers: readonly string[], bytes: Uint8Array, at: number): boolean {
  return verifySignature(scheme, headers, bytes, at * 1000).kind === 'valid';
}

/** With one bit of one byte changed, or one byte more. */
function changed(bytes: Uint8Array, at: number, bit: number): Uint8Array {
  const copy = Buffer.concat([bytes, Buffer.alloc(at >= bytes.length ? 1 : 0)]);
  const index = Math.min(at, copy.length - 1);
  copy[index] = (copy[index] ?? 0) ^ (1 << bit);
  return copy;
}

const position = fc.record({ at: fc.nat({ max: 250 }), bit: fc.nat({ max: 7 }) });

test('a signature of Stripe is valid for its own body and time only', () => {
  fc.assert(
    fc.property(body, timestamp, position, fc.integer({ min: -200, max: 200 }), (bytes, at, { at: i, bit }, shift) => {
      const signature = digest('whsec_x', `${at}.`, bytes, 'hex');
      const headers = (time: number): string[] => ['Stripe-Signature', `t=${time},v1=${signature}`];
      expect(isValid(STRIPE, headers(at), bytes, at)).toBe(true);
      expect(isValid(STRIPE, headers(at), changed(bytes, i, bit), at)).toBe(false);
      expect(isValid(STRIPE, headers(at + shift), bytes, at)).toBe(shift === 0);
    }),
  );
});

test('a Standard Webhooks signature is valid for its own id, time and body only', () => {
  fc.assert(
    fc.property(id, body, timestamp, position, id, (own, bytes, at, { at: i, bit }, other) => {
      const signature = `v1,${digest(KEY, `${own}.${at}.`, bytes, 'base64')}`;
      const headers = (name: string, time: number): string[] => [
        ...['webhook-id', name, 'webhook-timestamp', String(time)],
        ...['webhook-signature', signature],
      ];
      expect(isValid(STANDARD, headers(own, at), bytes, at)).toBe(true);
      expect(isValid(STANDARD, headers(own, at), changed(bytes, i, bit), at)).toBe(false);
      expect(isValid(STANDARD, headers(own, at + 1), bytes, at)).toBe(false);
      expect(isValid(STANDARD, headers(other, at), bytes, at)).toBe(other === own);
    }),
  );
});

test('no text in the headers makes a body valid or throws', () => {
  const text = fc.oneof(fc.string(), fc.stringMatching(/^[tv01=,.a-f -]{0,60}$/));
  fc.assert(
    fc.property(text, text, text, body, (first, second, third, bytes) => {
      expect(isValid(STRIPE, ['Stripe-Signature', first], bytes, 1_600_000_000)).toBe(false);
      const headers = ['webhook-id', first, 'webhook-timestamp', second, 'webhook-signature', third];
      expect(isValid(STANDARD, headers, bytes, 1_600_000_000)).toBe(false);
    }),
  );
});

test('a decoded signature has exactly the length of a digest', () => {
  const encoding = fc.constantFrom('hex' as const, 'base64' as const, 'base64url' as const);
  fc.assert(
    fc.property(encoding, fc.uint8Array({ maxLength: 80 }), fc.constantFrom(20, 32, 64), (kind, bytes, length) => {
      const decoded = decodeSignature(Buffer.from(bytes).toString(kind), kind, length);
      expect(decoded?.equals(bytes)).toBe(bytes.length === length ? true : undefined);
    }),
  );
});
