import { expect, test } from 'vitest';
import { PacedExposition } from '../../../src/admin/paced-exposition.ts';

/** Metrics that take `cost` ms each time, on a clock of their own. Each text is the time at which it was begun. */
function expose(cost: number, fails = false) {
  const clock = { time: 1000 };
  const begunAt: number[] = [];
  const exposition = new PacedExposition({
    render: () => {
      begunAt.push(clock.time);
      const text = String(clock.time);
      clock.time += cost;
      return fails ? Promise.reject(new Error('no metrics')) : text;
    },
    now: () => clock.time,
    sleep: (time) => {
      clock.time += time;
      return Promise.resolve();
    },
  });
  const read = async () => (await exposition.read('prometheus')).toString();
  return { clock, begunAt, exposition, read };
}

test('scrapes that arrive together share one rendering', async () => {
  const { begunAt, exposition, read } = expose(10);
  expect(await Promise.all(Array.from({ length: 50 }, read))).toEqual(Array.from({ length: 50 }, () => '1000'));
  expect(begunAt).toEqual([1000]);
  await Promise.all([read(), exposition.read('openmetrics')]);
  expect(begunAt).toHaveLength(3);
});

test('scrapes in a loop use a fifth of the time', async () => {
  const { clock, begunAt, read } = expose(10);
  for (let i = 0; i < 20; i += 1) await read();
  expect(begunAt).toEqual(Array.from({ length: 20 }, (_, i) => 1000 + 50 * i));
  clock.time += 60_000;
  await read();
  expect(begunAt.at(-1)).toBe(clock.time - 10);
});

test('no scrape gets a state from before its request', async () => {
  const { clock, read } = expose(10);
  await read();
  const waiting = read();
  const since = clock.time;
  expect(Number(await waiting)).toBeGreaterThanOrEqual(since);
});

test('a rendering that fails is reported to those that share it, and not kept', async () => {
  const { begunAt, read } = expose(10, true);
  await expect(Promise.all([read(), read()])).rejects.toThrow('no metrics');
  await expect(read()).rejects.toThrow('no metrics');
  expect(begunAt).toHaveLength(2);
});
