import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ActiveSetMember } from '../../src/core/collections/active-set.ts';
import { ActiveSet } from '../../src/core/collections/active-set.ts';

test('contains the members that have joined and not left, even if they leave during iteration', () => {
  const step = fc.oneof(
    fc.record({ comes: fc.constant(true), which: fc.nat(20) }),
    fc.record({ comes: fc.constant(false), which: fc.nat(20) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), fc.nat(3), (steps, every) => {
      const roster = new ActiveSet<ActiveSetMember>();
      const items = Array.from({ length: 21 }, () => ({ place: -1 }));
      const expected = new Set<ActiveSetMember>();
      for (const { comes, which } of steps) {
        const item = items[which];
        if (item === undefined || (comes && expected.has(item))) continue;
        if (comes) {
          expected.add(item);
          roster.add(item);
        } else {
          expected.delete(item);
          roster.remove(item);
        }
        expect(roster.size).toBe(expected.size);
        expect(new Set(roster)).toEqual(expected);
      }
      const seen: ActiveSetMember[] = [];
      for (const item of roster) {
        seen.push(item);
        if (seen.length % 4 === every) roster.remove(item);
      }
      expect(new Set(seen)).toEqual(expected);
      expect(roster.size).toBe(expected.size - seen.filter((_, i) => (i + 1) % 4 === every).length);
    }),
  );
});
