import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ClientRecords } from '../../src/store/clients/client-records.ts';
import { hashKey } from '../../src/store/clients/key-hash.ts';
import { SlotIndex } from '../../src/store/clients/slot-index.ts';

const SLOTS = 300;

class Trial {
  readonly records = new ClientRecords();
  readonly index = new SlotIndex(this.records.keys);

  constructor(slots = SLOTS) {
    this.records.grow(slots);
  }
}

/** Finds two keys with the same hash among a few hundred thousand (the birthday bound for 32 bits). */
function findCollision(): readonly [string, string] {
  const seen = new Map<number, string>();
  for (let i = 0; i < 1_000_000; i += 1) {
    const key = `up\0${i}`;
    const other = seen.get(hashKey(key));
    if (other !== undefined) return [other, key];
    seen.set(hashKey(key), key);
  }
  throw new Error('no two keys have one hash');
}

const short = fc.nat(400).map((number) => `up\0client-${number}`);
const odd = fc.nat(40).map((number) => `${'x'.repeat(54 + (number % 4))}${number < 20 ? '' : 'ж'}${number}`);
const key = fc.oneof({ weight: 4, arbitrary: short }, { weight: 1, arbitrary: odd });

describe('an index of slots', () => {
  test('finds the same slots as a Map, through any insertions and removals', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.boolean(), key), { maxLength: 1500, size: 'max' }), (actions) => {
        const { index, records } = new Trial();
        const known = new Map<string, number>();
        const free = Array.from({ length: SLOTS }, (_, slot) => slot);
        for (const [comes, each] of actions) {
          const slot = known.get(each);
          expect(index.get(each)).toBe(slot);
          if (slot !== undefined && !comes) {
            index.delete(slot);
            known.delete(each);
            free.push(slot);
          } else if (slot === undefined && comes && free.length > 0) {
            const made = free.shift() ?? 0;
            index.set(made, each);
            known.set(each, made);
          }
        }
        expect(index.size).toBe(known.size);
        for (const [each, slot] of known) {
          expect(index.get(each)).toBe(slot);
          expect(records.keys.get(slot)).toBe(each);
        }
      }),
      { numRuns: 60 },
    );
  });

  test('finds a key by its parts and as a whole', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 40 }), fc.string({ maxLength: 40, unit: 'grapheme' }), (prefix, rest) => {
        const { index } = new Trial();
        index.set(1, rest, prefix);
        index.set(2, `${prefix}\0${rest}!`);
        expect(index.get(`${prefix}\0${rest}`)).toBe(1);
        expect(index.get(rest, prefix)).toBe(1);
        expect(index.get(`${rest}!`, prefix)).toBe(2);
        expect(index.get(`${rest}?`, prefix)).toBeUndefined();
        expect(index.get(rest, `${prefix}?`)).toBeUndefined();
      }),
    );
  });

  test('distinguishes keys with the same hash', () => {
    const [one, other] = findCollision();
    const { index } = new Trial();
    index.set(3, one);
    expect(index.get(other)).toBeUndefined();
    index.set(4, other);
    expect([index.get(one), index.get(other)]).toEqual([3, 4]);
    index.delete(3);
    expect([index.get(one), index.get(other)]).toEqual([undefined, 4]);
  });

  test('finds its keys after the records have moved', () => {
    const { index, records } = new Trial(2);
    index.set(0, 'a');
    index.set(1, 'я'.repeat(80));
    records.grow(1000);
    index.set(2, 'c');
    expect(['a', 'я'.repeat(80), 'c', 'd'].map((each) => index.get(each))).toEqual([0, 1, 2, undefined]);
  });
});
