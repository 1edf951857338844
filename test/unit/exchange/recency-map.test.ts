import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RecencyMap } from '../../../src/core/collections/recency-map.ts';
import { isFarFromQuadratic } from '../../support/linear-time.ts';

const keys = fc.integer({ min: 0, max: 8 });
const steps = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant('set' as const), key: keys, value: fc.integer() }),
    fc.record({ do: fc.constantFrom('use' as const, 'delete' as const), key: keys }),
    fc.record({ do: fc.constant('deleteOldest' as const) }),
  ),
  { maxLength: 60 },
);

describe('a recency map', () => {
  test('is a Map whose keys are deleted before they are set again', () => {
    fc.assert(
      fc.property(steps, (all) => {
        const map = new RecencyMap<number, number>();
        const model = new Map<number, number>();
        for (const step of all) {
          if (step.do === 'set') {
            map.set(step.key, step.value);
            model.delete(step.key);
            model.set(step.key, step.value);
          } else if (step.do === 'delete') {
            expect(map.delete(step.key)).toBe(model.delete(step.key));
          } else if (step.do === 'use') {
            const value = model.get(step.key);
            expect(map.use(step.key)).toBe(value);
            if (value !== undefined && model.delete(step.key)) model.set(step.key, value);
          } else {
            const [oldest] = model;
            expect(map.deleteOldest()).toBe(oldest?.[1]);
            if (oldest !== undefined) model.delete(oldest[0]);
          }
          expect([...map]).toEqual([...model]);
          expect([...map.values()]).toEqual([...model.values()]);
          expect([map.size, map.oldest]).toEqual([model.size, [...model.keys()][0]]);
        }
      }),
    );
  });

  test('allows each visit to delete its key, or to set it again, which visits it once more', () => {
    const map = new RecencyMap<string, number>();
    for (const key of ['a', 'b', 'c', 'd']) map.set(key, 1);
    const visited: string[] = [];
    for (const [key, value] of map) {
      visited.push(key);
      if (key === 'b' && value === 1) map.set(key, 2);
      else map.delete(key);
    }
    expect(visited).toEqual(['a', 'b', 'c', 'd', 'b']);
    expect(map.size).toBe(0);
  });

  test('finds its oldest entry as fast after many that were deleted before it', () => {
    const map = new RecencyMap<number, number>();
    for (let i = 0; i < 16_384; i += 1) map.set(i, i);
    const work = (): void => {
      for (let i = 0; i < 16_384; i += 1) map.set(map.oldest ?? 0, i);
    };
    expect(isFarFromQuadratic(work)).toBe(true);
  });
});
