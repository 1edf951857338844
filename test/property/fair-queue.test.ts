import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { FairQueueFlow, FairQueueItem } from '../../src/core/collections/fair-queue-flow.ts';
import { FairQueue } from '../../src/core/collections/fair-queue.ts';

class Request implements FairQueueItem<Request> {
  readonly key: number;
  flow: FairQueueFlow<Request> | undefined = undefined;
  previous: Request | undefined = undefined;
  next: Request | undefined = undefined;

  constructor(key: number) {
    this.key = key;
  }
}

/** The same discipline with plain lists: the reference model. */
class NaiveQueue {
  readonly flows: { key: number; tag: number; weight: number; since: number; waiting: Request[] }[] = [];
  /** The start tags of clients of a low weight that left unserved. */
  readonly places = new Map<number, number>();
  virtual = 0;

  push(key: number, weight: number, request: Request, now: number): void {
    const flow = this.flows.find((each) => each.key === key);
    if (flow === undefined) {
      const start = Math.min(this.virtual, this.places.get(key) ?? this.virtual);
      this.places.delete(key);
      const tag = Math.max(this.virtual, start + 1 / weight);
      this.flows.push({ key, tag, weight, since: now, waiting: [request] });
    } else {
      flow.weight = weight;
      flow.waiting.push(request);
    }
  }

  /** Whether the queue under test may serve this request next. */
  mayServe(chosen: Request): boolean {
    const { tag, waiting } = this.flowOf(chosen);
    return waiting[0] === chosen && tag >= this.virtual && this.flows.every((other) => other.tag >= tag);
  }

  serve(chosen: Request): void {
    const flow = this.flowOf(chosen);
    this.virtual = flow.tag;
    this.drop(chosen);
    flow.tag += 1 / flow.weight;
  }

  remove(request: Request): void {
    const { key, tag, weight, waiting } = this.flowOf(request);
    const isLast = waiting.length === 1;
    this.drop(request);
    const total = this.flows.reduce((sum, flow) => sum + flow.weight, 0);
    if (isLast && weight * this.flows.length < 0.9 * total) this.places.set(key, tag - 1 / weight);
  }

  drop(request: Request): void {
    const flow = this.flowOf(request);
    flow.waiting.splice(flow.waiting.indexOf(request), 1);
    if (flow.waiting.length === 0) this.flows.splice(this.flows.indexOf(flow), 1);
  }

  flowOf(request: Request) {
    return this.flows.find((flow) => flow.key === request.key)!;
  }

  get waiting(): Request[] {
    return this.flows.flatMap((flow) => flow.waiting);
  }
}

const weight = fc.constantFrom(0.0625, 0.3, 1, 1, 4);
const change = fc.oneof(
  fc.record({ do: fc.constant('push' as const), key: fc.nat(4), weight }),
  fc.record({ do: fc.constant('push' as const), key: fc.nat(4), weight }),
  fc.record({ do: fc.constant('shift' as const) }),
  fc.record({ do: fc.constant('remove' as const), which: fc.nat() }),
);

test('serves, counts and shares as plain lists do', () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 100, size: 'max' }), (changes) => {
      const queue = new FairQueue<Request>();
      const model = new NaiveQueue();
      for (const [now, each] of changes.entries()) {
        if (each.do === 'push') {
          const request = new Request(each.key);
          queue.push(each.key, each.weight, request, now);
          model.push(each.key, each.weight, request, now);
        } else if (each.do === 'shift') {
          const next = queue.peek();
          expect(queue.shift()).toBe(next);
          expect(next === undefined).toBe(model.waiting.length === 0);
          if (next === undefined) continue;
          expect(model.mayServe(next)).toBe(true);
          model.serve(next);
        } else {
          const request = model.waiting[each.which % model.waiting.length];
          if (request === undefined) continue;
          queue.remove(request);
          queue.remove(request); // a repeat has no effect
          model.remove(request);
        }

        expect(queue.size).toBe(model.waiting.length);
        for (let key = 0; key <= 4; key += 1) {
          const flow = model.flows.find((candidate) => candidate.key === key);
          expect(queue.queuedBy(key)).toBe(flow?.waiting.length ?? 0);
          expect(queue.activeFor(key, now)).toBe(flow === undefined ? 0 : now - flow.since);
          const others = model.flows.filter((other) => other !== flow);
          const total = others.reduce((sum, other) => sum + other.weight, 2);
          expect(queue.share(key, 2)).toBeCloseTo(2 / total, 9);
        }
      }
    }),
    { numRuns: 100 },
  );
});

test('no client is ahead of its weighted share by more than one turn of each, while all wait', () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom(0.5, 1, 2, 4, 8), { minLength: 2, maxLength: 6, size: 'max' }),
      fc.integer({ min: 1, max: 200 }),
      (weights, turns) => {
        const queue = new FairQueue<Request>();
        const served = weights.map(() => 0);
        for (const [key, each] of weights.entries()) {
          for (let i = 0; i <= turns; i += 1) queue.push(key, each, new Request(key), 0);
        }
        for (let turn = 0; turn < turns; turn += 1) {
          const { key } = queue.shift()!;
          served[key] = served[key]! + 1;
        }
        // Golestani's bound for two backlogged flows: |Si/wi − Sj/wj| ≤ 1/wi + 1/wj.
        for (const [i, a] of weights.entries()) {
          for (const [j, b] of weights.entries()) {
            expect(Math.abs(served[i]! / a - served[j]! / b)).toBeLessThanOrEqual(1 / a + 1 / b + 1e-9);
          }
        }
      },
    ),
    { numRuns: 200 },
  );
});

test('clients of a group are served as one client, and share its turns', () => {
  const client = fc.record({ group: fc.constantFrom('x', 'y', undefined), key: fc.nat(3) });
  const step = fc.oneof(
    fc.record({ do: fc.constant('push' as const), client }),
    fc.record({ do: fc.constant('push' as const), client }),
    fc.record({ do: fc.constant('shift' as const) }),
    fc.record({ do: fc.constant('remove' as const), which: fc.nat() }),
  );
  const keyOf = ({ group, key }: { readonly group: string | undefined; readonly key: number }): number =>
    key + 10 * ['x', 'y', undefined].indexOf(group);
  fc.assert(
    fc.property(fc.array(step, { maxLength: 150, size: 'max' }), (steps) => {
      const queue = new FairQueue<Request>();
      const waiting: Request[] = [];
      const ownerOf = ({ key }: Request): number => (key < 20 ? 100 + Math.floor(key / 10) : key);
      for (const each of steps) {
        if (each.do === 'push') {
          const request = new Request(keyOf(each.client));
          queue.push(request.key, 1, request, 0, each.client.group);
          waiting.push(request);
        } else if (each.do === 'remove') {
          const request = waiting[each.which % waiting.length];
          if (request === undefined) continue;
          queue.remove(request);
          waiting.splice(waiting.indexOf(request), 1);
        } else {
          const request = queue.shift();
          expect(request === undefined).toBe(waiting.length === 0);
          if (request === undefined) continue;
          // In order of arrival for each client.
          expect(waiting.find(({ key }) => key === request.key)).toBe(request);
          waiting.splice(waiting.indexOf(request), 1);
        }
        expect(queue.size).toBe(waiting.length);
        expect(queue.activeWeight).toBeCloseTo(new Set(waiting.map(ownerOf)).size, 9);
        expect([...queue.flows].length).toBe(new Set(waiting.map(({ key }) => key)).size);
      }
      // All that wait have equal weights: no owner has two turns more than another that waits too.
      const turns = new Map(waiting.map((request) => [ownerOf(request), 0]));
      while (waiting.length > 0) {
        const request = queue.shift()!;
        turns.set(ownerOf(request), turns.get(ownerOf(request))! + 1);
        waiting.splice(waiting.indexOf(request), 1);
        const still = [...new Set(waiting.map(ownerOf))].map((owner) => turns.get(owner)!);
        if (still.length > 0) expect(Math.max(...still) - Math.min(...still)).toBeLessThanOrEqual(2);
      }
    }),
    { numRuns: 200 },
  );
});

test('clients that are not deferred have all turns of the queue, however many deferred clients wait', () => {
  const address = fc.record({
    clients: fc.integer({ min: 1, max: 1500 }),
    isShared: fc.boolean(),
    isDeferred: fc.boolean(),
  });
  const world = fc.record({
    addresses: fc.array(address, { minLength: 2, maxLength: 5, size: 'max' }),
    turns: fc.integer({ min: 20, max: 100 }),
  });
  fc.assert(
    fc.property(world, ({ addresses, turns }) => {
      const queue = new FairQueue<Request>();
      const ownerOf = ({ key }: Request): number => Math.floor(key / 10_000);
      const yields = (request: Request): boolean => addresses[ownerOf(request)]!.isDeferred;
      for (const [index, { clients, isShared }] of addresses.entries()) {
        for (let i = 0; i < Math.max(clients, turns); i += 1) {
          const key = 10_000 * index + (i % clients);
          queue.push(key, 1, new Request(key), 0, isShared ? String(index) : undefined);
        }
      }
      const others = addresses.filter(({ isDeferred }) => !isDeferred);
      const turnsOf = addresses.map(() => 0);
      let misses = 0;
      for (let turn = 0; turn < turns && others.length > 0; turn += 1) {
        let next = queue.peek(yields)!;
        while (yields(next)) {
          // Each search sets up to 1000 deferred clients aside, so 8 are enough for all of them.
          expect((misses += 1)).toBeLessThanOrEqual(8);
          next = queue.peek(yields)!;
        }
        turnsOf[ownerOf(next)] = turnsOf[ownerOf(next)]! + 1;
        queue.take(next);
      }
      // Shared addresses have equal turns, as long as each has requests.
      const equal = addresses.flatMap(({ isShared, isDeferred }, index) =>
        isShared && !isDeferred ? [turnsOf[index]!] : [],
      );
      if (equal.length > 1) expect(Math.max(...equal) - Math.min(...equal)).toBeLessThanOrEqual(1);
      // Afterwards, nothing is deferred, and each request is served once.
      const left = queue.size;
      let served = 0;
      while (queue.shift() !== undefined) served += 1;
      expect([served, queue.size, queue.activeWeight]).toEqual([left, 0, 0]);
    }),
    { numRuns: 30 },
  );
});
