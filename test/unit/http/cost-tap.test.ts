import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { CostTap } from '../../../src/http/cost/cost-tap.ts';
import { ReplayMemory } from '../../../src/http/overload/replay-memory.ts';

const PATH = ['usage', 'tokens'];

function openTap(coding = '', limit = 10_000_000) {
  const memory = new ReplayMemory(limit, 'cost_memory');
  let finish: (result: unknown) => void = () => undefined;
  const result = new Promise((resolve) => {
    finish = resolve;
  });
  const tap = new CostTap({
    memory,
    owner: 'a',
    coding,
    onRead: (lookup) => finish(lookup(PATH)),
    onUnread: (reason) => finish(reason),
  });
  return { tap, memory, result };
}

test('a body counts in the memory until it has been decoded', async () => {
  const { tap, memory, result } = openTap('gzip');
  const body = gzipSync(JSON.stringify({ usage: { tokens: 20 } }));
  tap.add(body.subarray(0, 5));
  tap.add(body.subarray(5));
  tap.end(true);
  expect(memory.used).toBe(body.length);
  expect(memory.bound).toMatchObject({ name: 'cost_memory' });
  expect(await result).toBe(20);
  await new Promise((resolve) => {
    setImmediate(resolve);
  });
  expect(memory.used).toBe(0);
});

test.each([
  ['is cut off', 'incomplete', '', '{"usage": {"tokens": 20}}', false],
  ['is above a megabyte', 'too_long', '', `{"usage": {"tokens": 20}, "x": "${'x'.repeat(1_100_000)}"}`, true],
  ['has an unknown coding', 'undecodable', 'lzma', '{"usage": {"tokens": 20}}', true],
  ['lacks the field', undefined, '', '{"usage": {"tokens": "20"}}', true],
  ['is no JSON', undefined, '', '{"usage": {"tokens": 20}', true],
] as const)('names no cost if it %s', async (_, reason, coding, body, isComplete) => {
  const { tap, memory, result } = openTap(coding);
  tap.add(Buffer.from(body));
  tap.end(isComplete);
  expect(await result).toBe(reason);
  await new Promise((resolve) => {
    setImmediate(resolve);
  });
  expect(memory.used).toBe(0);
});

test('a body names no cost if there is no memory for it', async () => {
  const { tap, memory, result } = openTap('', 10);
  tap.add(Buffer.from('{"usage": {"tokens": 20}}'));
  tap.end(true);
  expect(await result).toBe('no_memory');
  expect(memory.used).toBe(0);
});
