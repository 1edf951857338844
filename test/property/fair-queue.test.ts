import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { FairQueueFlow, FairQueueItem } from '../../src/core/admission/fair-queue.ts';
import { FairQueue } from '../../src/core/admission/fair-queue.ts';

class Request implements FairQueueItem<Request> {
  readonly key: number;
  flow: FairQueueFlow<Request> | undefined = undefined;
  previous: Request | undefined = undefined;
  next: Request | undefined = undefined;

  constructor(key: number) {
    this.key = key;
  }
}

/** The same discipline by plain lists: the reference model. */
class NaiveQueue {
  readonly flows: { key: number; tag: number; weight: number; since: number; waiting: Request[] }[] = [];
  virtual = 0;

  push(key: number, weight: number, request: Request, now: number): void {
    const flow = this.flows.find((each) => each.key === key);
    if (flow === undefined) {
      this.flows.push({ key, tag: this.virtual + 1 / weight, weight, since: now, waiting: [request] });
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
    this.remove(chosen);
    flow.tag += 1 / flow.weight;
  }

  remove(request: Request): void {
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

test('while all clients wait, none is ahead of its weighted share by more than one turn of each', () => {
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
