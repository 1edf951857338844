import { expect, test } from 'vitest';
import { readField } from '../../../src/http/delivery/read-field.ts';

const inBody = (value: unknown) =>
  readField({ kind: 'json', path: ['id'] }, { headers: {} }, Buffer.from(JSON.stringify({ id: value })));

test('a value of up to 256 characters is read as it is, a longer one as its digest', () => {
  expect(inBody('x'.repeat(256))).toBe('x'.repeat(256));
  const [long, other] = [inBody('x'.repeat(257)), inBody('x'.repeat(258))];
  expect(long).toMatch(/^sha256:[0-9a-f]{64}$/);
  expect(other).not.toBe(long);
  expect(inBody('x'.repeat(257))).toBe(long);
});

test('an empty value, another type, or a number that is not exact counts as missing', () => {
  expect([inBody(''), inBody(null), inBody({}), inBody(2 ** 53)]).toEqual([undefined, undefined, undefined, undefined]);
  expect(readField({ kind: 'json', path: ['id'] }, { headers: {} }, Buffer.from(String.raw`{"id":"\ud800"}`))).toBe(
    undefined,
  );
});

test('values of different types, and texts that look like what is stored in place of others, differ', () => {
  const seen = [42, '42', true, 'true', 'json:42', 'x'.repeat(257), inBody('x'.repeat(257))].map(inBody);
  expect(new Set(seen).size).toBe(7);
  expect(seen.slice(0, 4)).toEqual(['json:42', '42', 'json:true', 'true']);
});
