import { describe, expect, test } from 'vitest';
import { apiKeyId, createApiKey, hashApiKey } from '../../../src/config/auth/api-key.ts';
import { formatKeyLine, isClientName, parseKeyFile } from '../../../src/config/auth/key-file.ts';

const HASH = 'ab'.repeat(32);
const LINE = `0123456789ab sha256:${HASH} 2026-11-30T10:00:00Z shop`;

describe('a key', () => {
  test('has a prefix, an id and 256 random bits', () => {
    const { id, text } = createApiKey();
    expect(text).toMatch(/^tg_[0-9a-f]{12}_[A-Za-z0-9_-]{43}$/);
    expect(apiKeyId(text)).toBe(id);
    expect(createApiKey().text).not.toBe(text);
    expect(hashApiKey(text)).toHaveLength(32);
  });

  test.each(['', 'tg_', 'tg_0123456789ab_', `tg_0123456789AB_${'a'.repeat(43)}`, `tg_0123456789ab_${'a'.repeat(44)}`])(
    'has no id in %o',
    (text) => {
      expect(apiKeyId(text)).toBeUndefined();
    },
  );
});

describe('the file', () => {
  test('has a line for each key, comments and empty lines', () => {
    const keys = parseKeyFile(`# comment\n\n${LINE}\r\n  `);
    expect(keys).toEqual([
      { id: '0123456789ab', hash: Buffer.from(HASH, 'hex'), createdAt: '2026-11-30T10:00:00Z', client: 'shop' },
    ]);
    expect(keys.map(formatKeyLine)).toEqual([`${LINE}\n`]);
  });

  test('may have the time at which a key expires', () => {
    const line = LINE.replace(' shop', ' expires:2027-02-28T10:00:00Z shop');
    const keys = parseKeyFile(line);
    expect(keys).toMatchObject([{ expiresAt: '2027-02-28T10:00:00Z', client: 'shop' }]);
    expect(keys.map(formatKeyLine)).toEqual([`${line}\n`]);
    const odd = parseKeyFile(LINE.replace(' shop', ' expires:2027-02-28T10:00:00Z'));
    expect(odd).toEqual([expect.objectContaining({ client: 'expires:2027-02-28T10:00:00Z' })]);
    expect(odd[0]).not.toHaveProperty('expiresAt');
  });

  test.each([
    [LINE.replace(' shop', ' expires:2027-13-28T10:00:00Z shop'), 'line 1: the time after expires: does not exist'],
    [LINE.replace(' shop', ' expires:2027-02-30T10:00:00Z shop'), 'line 1: the time after expires: does not exist'],
    [`${LINE} more`, 'line 1: expected the id, sha256:HASH, the time and the client of a key'],
    [`\n${LINE.replace('sha256', 'md5')}`, 'line 2: expected the id, sha256:HASH, the time and the client of a key'],
    [`${LINE}\n${LINE}`, 'line 2: the id 0123456789ab is used twice'],
  ])('is refused with the line: %o', (text, message) => {
    expect(() => parseKeyFile(text)).toThrow(message);
  });

  test('has names without spaces', () => {
    expect(['shop', 'system:serviceaccount:a:b', 'a@b.example'].every(isClientName)).toBe(true);
    expect(['', 'a b', '#a', 'é', 'x'.repeat(129)].some(isClientName)).toBe(false);
  });
});
