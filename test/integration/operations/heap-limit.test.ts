import { spawnSync } from 'node:child_process';
import { getHeapStatistics } from 'node:v8';
import { describe, expect, test } from 'vitest';
import { oldSpaceLimit } from '../../../src/http/overload/v8-heap.ts';
import { capByHeap } from '../../../src/core/overload/heap-capacity.ts';

const MIB = 1024 ** 2;
const WANTED = { connections: 20_000, requests: 20_000, clients: 100_000, clientLimits: 100_000 };

describe('the heap limit', () => {
  test('is that of the last flag', () => {
    expect(oldSpaceLimit(['--max-old-space-size=256'])).toBe(256 * MIB);
    expect(oldSpaceLimit(['--max_old_space_size=256', '--enable-source-maps', '--max-old-space-size=300'])).toBe(
      300 * MIB,
    );
  });

  test('is read from NODE_OPTIONS and the command line, which takes precedence', () => {
    const source = `import { oldSpaceLimit } from ${JSON.stringify(new URL('../../../src/http/overload/v8-heap.ts', import.meta.url).href)}; console.log(oldSpaceLimit());`;
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

describe('table sizes', () => {
  test('are as configured where the heap has room', () => {
    expect(capByHeap(WANTED, 4096 * MIB)).toEqual(WANTED);
  });

  test('are reduced otherwise: each to a part of the heap, and all together to two thirds', () => {
    const sizes = capByHeap(WANTED, 256 * MIB);
    expect(sizes).toEqual({ connections: 9830, requests: 9362, clients: 100_000, clientLimits: 14_298 });
    const bytes = 4096 * sizes.connections + 7168 * sizes.requests + 256 * sizes.clients + 2816 * sizes.clientLimits;
    expect(bytes).toBeLessThan((2 / 3) * 256 * MIB);
  });

  test('are never reduced to nothing', () => {
    expect(capByHeap(WANTED, 1)).toEqual({ connections: 1, requests: 1, clients: 1, clientLimits: 1 });
  });
});
