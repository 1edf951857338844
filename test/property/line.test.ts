import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { LinkedItem } from '../../src/core/collections/linked-queue.ts';
import { LinkedQueue } from '../../src/core/collections/linked-queue.ts';

class Item implements LinkedItem<Item> {
  previous: Item | undefined = undefined;
  next: Item | undefined = undefined;
}

const step = fc.oneof(
  fc.record({ do: fc.constant('push' as const) }),
  fc.record({ do: fc.constant('shift' as const) }),
  fc.record({ do: fc.constant('remove' as const), which: fc.nat(30) }),
);

test('serves in order of arrival while entries leave, and a removed entry keeps no links', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const line = new LinkedQueue<Item>();
      const expected: Item[] = [];
      const all: Item[] = [];
      for (const each of steps) {
        if (each.do === 'push') {
          const item = new Item();
          all.push(item);
          expected.push(item);
          line.push(item);
        } else if (each.do === 'shift') {
          expect(line.shift()).toBe(expected.shift());
        } else {
          const item = all[each.which];
          if (item === undefined) continue;
          const at = expected.indexOf(item);
          expect(line.remove(item)).toBe(at >= 0);
          if (at >= 0) expected.splice(at, 1);
        }
        expect(line.length).toBe(expected.length);
        expect(line.head).toBe(expected[0]);
        for (const item of all) {
          if (!expected.includes(item)) expect([item.previous, item.next]).toEqual([undefined, undefined]);
        }
      }
      expect(line.clear()).toEqual(expected);
      expect(line.length).toBe(0);
    }),
  );
});
