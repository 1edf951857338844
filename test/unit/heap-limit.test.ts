import { spawnSync } from 'node:child_process';
import { getHeapStatistics } from 'node:v8';
import { describe, expect, test } from 'vitest';
import { heapLimit } from '../../src/http/overload/v8-heap.ts';
import { fitHeap } from '../../src/core/overload/heap-capacity.ts';

const MIB = 1024 ** 2;
const WANTED = { connections: 20_000, requests: 20_000, clients: 100_000, clientLimits: 100_000 };

describe('the limit of the heap', () => {
  test('is what a flag says, the last one', () => {
    expect(heapLimit(['--max-old-space-size=256'])).toBe(256 * MIB);
    expect(heapLimit(['--max_old_space_size=256', '--enable-source-maps', '--max-old-space-size=300'])).toBe(300 * MIB);
  });

  test('is read from NODE_OPTIONS and the command line, which has the last word', () => {
    const source = `import { heapLimit } from ${JSON.stringify(new URL('../../src/http/overload/v8-heap.ts', import.meta.url).href)}; console.log(heapLimit());`;
    const limitWith = (flags: string[], NODE_OPTIONS: string): number => {
      const args = [...flags, '--input-type=module', '--eval', source];
      return Number(spawnSync(process.execPath, args, { env: { NODE_OPTIONS }, encoding: 'utf8' }).stdout);
    };
    expect(limitWith([], '--no-warnings --max-old-space-size=200')).toBe(200 * MIB);
    expect(limitWith(['--max-old-space-size=100'], '--max-old-space-size=200')).toBe(100 * MIB);
    const unset = limitWith([], '');
    expect(unset).toBeGreaterThan(100 * MIB);
    expect(unset).toBeLessThan(getHeapStatistics().heap_size_limit);
  });
});

describe('tables fit into the heap', () => {
  test('as configured where it has room', () => {
    expect(fitHeap(WANTED, 4096 * MIB)).toEqual(WANTED);
  });

  test('smaller where it has not: each in a part of it, and all together in two thirds', () => {
    const sizes = fitHeap(WANTED, 256 * MIB);
    expect(sizes).toEqual({ connections: 9830, requests: 9362, clients: 100_000, clientLimits: 14_298 });
    const bytes = 4096 * sizes.connections + 7168 * sizes.requests + 256 * sizes.clients + 2816 * sizes.clientLimits;
    expect(bytes).toBeLessThan((2 / 3) * 256 * MIB);
  });

  test('never to nothing', () => {
    expect(fitHeap(WANTED, 1)).toEqual({ connections: 1, requests: 1, clients: 1, clientLimits: 1 });
  });
});
