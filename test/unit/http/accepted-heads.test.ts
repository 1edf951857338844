import { describe, expect, test } from 'vitest';
import { AcceptedHeads, measureHead } from '../../../src/http/upstream/http2/accepted-heads.ts';

const MINUTE = 60_000;

const fields = (count: number, length: number): string[] =>
  Array.from({ length: count }, () => ['x', 'v'.repeat(length - 1)]).flat();
const size = (length: number) => measureHead('/', fields(1, length));

function start() {
  let now = 0;
  const heads = new AcceptedHeads({ now: () => now });
  return { heads, advance: (by: number) => void (now += by) };
}

describe('a head counts as accepted', () => {
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
  ])('by all servers or not, with %s', (_, path, headers, expected) => {
    expect(start().heads.includes(measureHead(path, headers))).toBe(expected);
  });

  test.each([
    [200, true],
    [401, true],
    [404, true],
    [400, false],
    [414, false],
    [431, false],
    [494, false],
    [502, false],
  ])('after a head of its size got a %i: %s', (status, expected) => {
    const { heads } = start();
    expect(heads.onResponse(size(6000), status)).toBe(expected);
    expect([size(6000), size(6001)].map((each) => heads.includes(each))).toEqual([expected, false]);
    expect(heads.onResponse(size(6000), 200)).toBe(!expected);
    expect(heads.onResponse(size(6000), 200)).toBe(false);
  });

  test('until a connection is lost with such a head on it', () => {
    const { heads } = start();
    heads.onResponse(size(6000), 200);
    heads.onConnectionLost(size(4096), true); // every server accepts this one
    expect(heads.includes(size(6000))).toBe(true);
    heads.onConnectionLost(size(5000), false);
    expect([size(4096), size(5000)].map((each) => heads.includes(each))).toEqual([true, false]);
    expect(heads.onResponse(size(6000), 200)).toBe(true);
  });

  test('only ten minutes after the upstream closed a connection with an error', () => {
    const { heads, advance } = start();
    heads.onResponse(size(6000), 200);
    heads.onConnectionLost(size(6000), true);
    advance(10 * MINUTE - 1);
    expect(heads.onResponse(size(6000), 200)).toBe(false);
    advance(1);
    expect(heads.onResponse(size(6000), 200)).toBe(true);
  });
});
