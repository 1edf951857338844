import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { HmacSha256 } from '../../src/http/request/hmac.ts';

const secret = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 200 }),
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
);
const text = fc.oneof(
  { weight: 10, arbitrary: fc.string({ unit: 'binary', maxLength: 100 }) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', minLength: 900, maxLength: 1200, size: 'max' }) },
);

test('every digest equals that of createHmac, whatever was hashed before', () => {
  fc.assert(
    fc.property(secret, fc.array(text, { minLength: 1, maxLength: 5 }), (key, texts) => {
      const hmac = new HmacSha256(key);
      for (const each of texts) {
        expect(hmac.digest(each)).toEqual(createHmac('sha256', key).update(each).digest());
      }
    }),
  );
});
