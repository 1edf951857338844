import { describe, expect, test } from 'vitest';
import type { FairQueueFlow, FairQueueItem } from '../../../src/core/collections/fair-queue-flow.ts';
import { FairQueue } from '../../../src/core/collections/fair-queue.ts';

class CostlyRequest implements FairQueueItem<CostlyRequest> {
  flow: FairQueueFlow<CostlyRequest> | undefined = undefined;
  previous: CostlyRequest | undefined = undefined;
  next: CostlyRequest | undefined = undefined;
  readonly key: number;
  readonly cost: number;

  constructor(key: number, cost: number) {
    this.key = key;
    this.cost = cost;
  }
}

/** The units that each client gets while all have waiting requests. @param costs by client */
function unitsOf(costs: readonly number[], turns: number, keepsBacklog: boolean, group?: string): number[] {
  const queue = new FairQueue<CostlyRequest>();
  const units = costs.map(() => 0);
  const push = (key: number): void =>
    queue.push(key, 1, new CostlyRequest(key, costs[key]!), 0, group === undefined ? undefined : `${group}${key}`);
  for (const key of costs.keys()) for (let i = 0; i < (keepsBacklog ? 3 : 1); i += 1) push(key);
  for (let turn = 0; turn < turns; turn += 1) {
    const next = queue.peek()!;
    queue.take(next, next.cost);
    units[next.key]! += next.cost;
    push(next.key);
  }
  return units;
}

function jain(values: readonly number[]): number {
  const sum = values.reduce((total, value) => total + value, 0);
  return sum ** 2 / (values.length * values.reduce((total, value) => total + value ** 2, 0));
}

describe('a fair queue of requests with costs', () => {
  for (const keepsBacklog of [true, false]) {
    test(`gives each client the same units ${keepsBacklog ? 'with a backlog' : 'with one request at a time'}`, () => {
      expect(jain(unitsOf([1, 2, 10, 50], 20_000, keepsBacklog))).toBeGreaterThan(0.999);
    });
  }

  test('gives each address the same units', () => {
    expect(jain(unitsOf([1, 2, 10, 50], 20_000, false, 'address'))).toBeGreaterThan(0.999);
  });

  test('serves the first expensive request of a client in its turn', () => {
    const queue = new FairQueue<CostlyRequest>();
    const cheap = [1, 2, 3].map((key) => new CostlyRequest(key, 1));
    for (const request of cheap) queue.push(request.key, 1, request, 0);
    const costly = new CostlyRequest(0, 1000);
    queue.push(0, 1, costly, 0);
    for (const request of [...cheap, costly]) {
      expect(queue.peek()).toBe(request);
      queue.take(request, request.cost);
    }
  });

  test('delays the next turn of a client whose request has cost more than it was charged, although none of its requests waited', () => {
    const queue = new FairQueue<CostlyRequest>();
    const serveOf = (key: number): void => {
      const request = new CostlyRequest(key, 1);
      queue.push(key, 1, request, 0);
      queue.take(request, 1);
    };
    for (let i = 0; i < 4; i += 1) queue.push(1, 1, new CostlyRequest(1, 1), 0);
    serveOf(0);
    queue.settle({ key: 0, weight: 1, units: 3, largest: 100 });
    queue.push(0, 1, new CostlyRequest(0, 1), 0);
    const served: number[] = [];
    for (let next = queue.peek(); next !== undefined; next = queue.peek()) {
      served.push(next.key);
      queue.take(next, next.cost);
    }
    expect(served).toEqual([1, 1, 1, 1, 0]);
  });

  test('lets a client return sooner that was charged too much, by its charge at most', () => {
    const served = (refund: number): number => {
      const queue = new FairQueue<CostlyRequest>();
      for (let i = 0; i < 20; i += 1) queue.push(1, 1, new CostlyRequest(1, 1), 0);
      const first = new CostlyRequest(0, 10);
      queue.push(0, 1, first, 0);
      queue.take(first, first.cost);
      if (refund > 0) queue.settle({ key: 0, weight: 1, units: -refund, largest: 100 });
      queue.push(0, 1, new CostlyRequest(0, 10), 0);
      for (let turn = 0; ; turn += 1) {
        const next = queue.peek()!;
        if (next.key === 0) return turn;
        queue.take(next, 1);
      }
    };
    expect([served(0), served(5), served(9), served(1000)]).toEqual([10, 5, 1, 1]);
  });

  for (const group of [undefined, 'address']) {
    test(`delays no turn of ${group === undefined ? 'a client' : 'an address or its clients'} by costs that are forgiven while requests wait`, () => {
      const queue = new FairQueue<CostlyRequest>();
      for (let i = 0; i < 20; i += 1) for (const key of [0, 1]) queue.push(key, 1, new CostlyRequest(key, 1), 0, group);
      queue.push(2, 1, new CostlyRequest(2, 1), 0);
      const dear = queue.peek()!;
      queue.take(dear, 500);
      queue.settle({ key: dear.key, weight: 1, group, units: 300, largest: 1000 });
      queue.forgiveCosts();
      const served = Array.from({ length: 6 }, () => {
        const next = queue.peek()!;
        queue.take(next);
        return next.key;
      });
      expect(served.slice(0, 3)).toContain(2);
      expect(served.filter((key) => key === 0).length).toBeGreaterThanOrEqual(2);
      expect(served.filter((key) => key === 1).length).toBeGreaterThanOrEqual(2);
    });
  }

  for (const keepsBacklog of [true, false]) {
    test(`gives each client of an address the same units, also of settled costs, ${keepsBacklog ? 'with a backlog' : 'one request at a time'}`, () => {
      const queue = new FairQueue<CostlyRequest>();
      const costs = [1, 2, 10, 50];
      const units = costs.map(() => 0);
      const push = (key: number): void => queue.push(key, 1, new CostlyRequest(key, costs[key]!), 0, 'address');
      for (const key of costs.keys()) for (let i = 0; i < (keepsBacklog ? 3 : 1); i += 1) push(key);
      for (let turn = 0; turn < 20_000; turn += 1) {
        const next = queue.peek()!;
        queue.take(next, 5);
        const settled = { key: next.key, weight: 1, group: 'address', units: next.cost - 5, largest: 1000 };
        if (!keepsBacklog) queue.settle(settled);
        push(next.key);
        if (keepsBacklog) queue.settle(settled);
        units[next.key]! += next.cost;
      }
      expect(jain(units)).toBeGreaterThan(0.99);
    });
  }

  test('postpones the next turn by no more than the pacer charges, whatever is settled', () => {
    const queue = new FairQueue<CostlyRequest>();
    for (let i = 0; i < 50; i += 1) for (const key of [0, 1]) queue.push(key, 1, new CostlyRequest(key, 1), 0);
    queue.take(queue.peek()!, 1);
    for (let i = 0; i < 5; i += 1) queue.settle({ key: 0, weight: 1, units: 1e9, largest: 10 });
    let turns = 0;
    for (let next = queue.peek()!; next.key === 1; next = queue.peek()!) {
      queue.take(next, 1);
      turns += 1;
    }
    expect(turns).toBeLessThanOrEqual(12);
  });

  for (const [where, groupOf] of [
    ['a client', () => undefined],
    ['an address', (key: number) => `address${key}`],
    ['a client of an address', () => 'address'],
  ] as const) {
    for (const settles of [false, true]) {
      test(`delays the next turn of ${where} by ${settles ? 'settled ' : ''}costs, also if its requests leave and return`, () => {
        const queue = new FairQueue<CostlyRequest>();
        const costs = [100, 1];
        const units = [0, 0];
        const waiting: CostlyRequest[][] = [[], []];
        const push = (key: number): void => {
          const request = new CostlyRequest(key, costs[key]!);
          waiting[key]!.push(request);
          queue.push(key, 1, request, 0, groupOf(key));
        };
        for (const key of [0, 0, 1, 1]) push(key);
        for (let turn = 0; turn < 20_000; turn += 1) {
          const next = queue.peek()!;
          queue.take(next, settles ? 1 : next.cost);
          units[next.key]! += next.cost;
          waiting[next.key] = waiting[next.key]!.filter((request) => request !== next);
          const settled = { key: next.key, weight: 1, group: groupOf(next.key), units: next.cost - 1, largest: 1000 };
          push(next.key);
          if (settles) queue.settle(settled);
          if (next.key !== 0) continue;
          for (const request of waiting[0]!.splice(0)) queue.remove(request);
          for (let i = 0; i < 2; i += 1) push(0);
        }
        expect(jain(units)).toBeGreaterThan(0.99);
      });
    }
  }
});
