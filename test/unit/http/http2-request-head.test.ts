import { describe, expect, test } from 'vitest';
import { mayShareConnection } from '../../../src/http/upstream/http2/http2-request-head.ts';

const fields = (count: number, length: number): string[] =>
  Array.from({ length: count }, () => ['x', 'v'.repeat(length - 1)]).flat();

describe('a request shares a connection', () => {
  test.each([
    ['a field of 4096 bytes', '/', fields(1, 4096), true],
    ['a longer field', '/', fields(1, 4097), false],
    ['a path of 4096 bytes', `/${'p'.repeat(4095)}`, [], true],
    ['a longer path', `/${'p'.repeat(4096)}`, [], false],
    ['100 fields', '/', fields(100, 2), true],
    ['101 fields', '/', fields(101, 2), false],
    // 256 bytes for pseudo-headers, 1 for the path, 10 fields of 761 bytes and 32 each
    ['8187 bytes in total', '/', fields(10, 761), true],
    ['8197 bytes in total', '/', fields(10, 762), false],
  ])('or not, with %s', (_, path, headers, expected) => {
    expect(mayShareConnection(path, headers)).toBe(expected);
  });

  test('only within the size that the upstream announced', () => {
    expect([8187, 8186].map((announced) => mayShareConnection('/', fields(10, 761), announced))).toEqual([true, false]);
  });
});
