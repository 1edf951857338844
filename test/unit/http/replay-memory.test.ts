import { expect, test } from 'vitest';
import { ReplayMemory } from '../../../src/http/overload/replay-memory.ts';

function fill(memory: ReplayMemory, owner: string, bytes: number): number {
  let kept = 0;
  while (memory.reserve(bytes, owner)) kept += bytes;
  return kept;
}

test('one address leaves a ninth of the memory to others, and can use its part again after a release', () => {
  const memory = new ReplayMemory(9000);
  expect(fill(memory, 'busy', 100)).toBe(8000);
  expect(memory.bound).toMatchObject({ name: 'replay_memory', reached: 1 });
  expect(fill(memory, 'calm', 100)).toBe(800);
  expect(fill(memory, 'third', 100)).toBe(100);
  expect(memory.reserve(100, 'busy')).toBe(false);
  memory.release(8000, 'busy');
  expect(memory.used).toBe(900);
  expect(memory.reserve(7000, 'busy')).toBe(true);
});

test('a body longer than the memory that is left is not kept', () => {
  const memory = new ReplayMemory(1000);
  expect(memory.reserve(1001, 'a')).toBe(false);
  expect(memory.reserve(800, 'a')).toBe(true);
  memory.release(800, 'a');
  memory.release(0, 'a');
  expect([memory.used, memory.bound.reached]).toEqual([0, 1]);
});
