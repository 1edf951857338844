import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { HeapItem } from '../../src/core/collections/binary-heap.ts';
import { BinaryHeap } from '../../src/core/collections/binary-heap.ts';
import { SlotHeap } from '../../src/store/clients/slot-heap.ts';
import { SlotList } from '../../src/store/clients/slot-list.ts';

const SLOTS = Array.from({ length: 16 }, (_, slot) => slot);

interface Item extends HeapItem {
  readonly name: number;
  key: number;
}

/** Keys repeat often, to cover equal ones. */
const key = fc.integer({ min: 0, max: 20 });
const slot = fc.nat(15);

type Change =
  | { readonly do: 'push' | 'update'; readonly slot: number; readonly key: number }
  | { readonly do: 'remove'; readonly slot: number }
  | { readonly do: 'pop' };

const changes: fc.Arbitrary<Change[]> = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant('push' as const), slot, key }),
    fc.record({ do: fc.constant('push' as const), slot, key }),
    fc.record({ do: fc.constant('push' as const), slot, key }),
    fc.record({ do: fc.constant('update' as const), slot, key }),
    fc.record({ do: fc.constant('remove' as const), slot }),
    fc.record({ do: fc.constant('pop' as const) }),
  ),
  { maxLength: 80, size: 'max' },
);

describe('a heap', () => {
  test('contains the same items as a plain set, and its first has the least key', () => {
    fc.assert(
      fc.property(changes, (sequence) => {
        const heap = new BinaryHeap<Item>((a, b) => a.key < b.key);
        const items = Array.from({ length: 16 }, (_, name): Item => ({ name, key: 0, heapIndex: -1 }));
        const model = new Set<Item>();
        for (const change of sequence) {
          const item = change.do === 'pop' ? heap.peek() : items[change.slot];
          if (item === undefined) continue;
          if (change.do === 'push' && !model.has(item)) {
            item.key = change.key;
            heap.push(item);
            model.add(item);
          } else if (change.do === 'update') {
            item.key = change.key;
            heap.update(item);
          } else if (change.do === 'remove' || change.do === 'pop') {
            heap.remove(item);
            model.delete(item);
          }
          expect(heap.size).toBe(model.size);
          expect(heap.peek()?.key).toBe(model.size === 0 ? undefined : Math.min(...[...model].map((each) => each.key)));
          expect(items.every((each) => each.heapIndex >= 0 === model.has(each))).toBe(true);
        }
        expect(drain(heap)).toEqual([...model].map((each) => each.key).toSorted((a, b) => a - b));
      }),
      { numRuns: 100 },
    );
  });
});

describe('a heap of slots', () => {
  test('contains the same items as a plain map, and its first has the least key, while it grows', () => {
    fc.assert(
      fc.property(changes, (sequence) => {
        const heap = new SlotHeap();
        const model = new Map<number, number>();
        let room = 0;
        for (const change of sequence) {
          if (change.do === 'push') {
            if (change.slot >= room) heap.grow((room = Math.max(change.slot + 1, 2 * room)));
            heap.push(change.slot, change.key);
            if (!model.has(change.slot)) model.set(change.slot, change.key);
          } else if (change.do !== 'update') {
            const gone = change.do === 'pop' ? heap.first : change.slot;
            if (gone === undefined) continue;
            heap.remove(gone);
            model.delete(gone);
          }
          const { first } = heap;
          if (first === undefined) expect(model.size).toBe(0);
          else expect(model.get(first)).toBe(Math.min(...model.values()));
          expect(SLOTS.filter((each) => heap.has(each) !== model.has(each))).toHaveLength(0);
        }
        const keys: (number | undefined)[] = [];
        for (let { first } = heap; first !== undefined; { first } = heap) {
          keys.push(model.get(first));
          heap.remove(first);
        }
        expect(keys).toEqual([...model.values()].toSorted((a, b) => a - b));
      }),
      { numRuns: 100 },
    );
  });
});

describe('a list of slots', () => {
  test('keeps the order of a plain array while it grows', () => {
    fc.assert(
      fc.property(changes, (sequence) => {
        const list = new SlotList();
        let model: number[] = [];
        let room = 0;
        for (const change of sequence) {
          if (change.do === 'push') {
            if (change.slot >= room) list.grow((room = Math.max(change.slot + 1, 2 * room)));
            list.push(change.slot);
            if (!model.includes(change.slot)) model.push(change.slot);
          } else if (change.do !== 'update') {
            const gone = change.do === 'pop' ? list.first : change.slot;
            if (gone === undefined) continue;
            list.remove(gone);
            model = model.filter((each) => each !== gone);
          }
          expect(list.first).toBe(model[0]);
          expect(SLOTS.filter((each) => list.has(each) !== model.includes(each))).toHaveLength(0);
        }
        const order: number[] = [];
        for (let first = list.first; first !== undefined; first = list.first) {
          order.push(first);
          list.remove(first);
        }
        expect(order).toEqual(model);
      }),
      { numRuns: 100 },
    );
  });
});

function drain(heap: BinaryHeap<Item>): number[] {
  const keys: number[] = [];
  for (let item = heap.peek(); item !== undefined; item = heap.peek()) {
    keys.push(item.key);
    heap.remove(item);
  }
  return keys;
}
