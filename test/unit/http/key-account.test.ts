import { describe, expect, test } from 'vitest';
import { keyAccountOf } from '../../../src/http/idempotency/key-account.ts';

function accountOf(claims: readonly string[], payload: string): string {
  const token = `e30.${Buffer.from(payload).toString('base64url')}.c2ln`;
  const headers = { authorization: `Bearer ${token}` };
  return keyAccountOf([{ kind: 'jwt', header: 'authorization', claims }], { headers, rawHeaders: [] });
}

describe('the account of a token', () => {
  test.each(['{"tenant":"t1"}', '{"org":null,"tenant":"t1"}', '{"org":"","tenant":"t1"}'])(
    'is the first claim that names one: %s',
    (payload) => {
      expect(accountOf(['org', 'tenant'], payload)).toBe('authorization="t1"');
      expect(accountOf(['org', 'tenant'], payload.replace('t1', 't2'))).toBe('authorization="t2"');
    },
  );

  test.each(['0', 'false', '"0"'])('may be any other value: %s', (value) => {
    expect(accountOf(['org', 'tenant'], `{"org":${value},"tenant":"t1"}`)).toBe(`authorization=${value}`);
  });

  test.each(['{"org":null}', '{"org":""}', '{}'])('is none if no claim names one: %s', (payload) => {
    expect(accountOf(['org'], payload)).toBe('');
  });

  test('does not depend on the order of members', () => {
    const [one, other] = ['{"org":{"id":1,"at":{"x":1,"y":[2,1]}}}', '{"org":{"at":{"y":[2,1],"x":1},"id":1}}'];
    expect(accountOf(['org'], one)).toBe(accountOf(['org'], other));
    expect(accountOf(['org'], one)).not.toBe(accountOf(['org'], other.replace('[2,1]', '[1,2]')));
  });
});
