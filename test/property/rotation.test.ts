import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { AttributedRequest } from '../../src/core/endpoints/failing-parts.ts';
import { attributesOfClient } from '../../src/core/rate/breaker/request-attributes.ts';
import { EndpointBalancer } from '../../src/core/endpoints/outlier-detection.ts';

type Act =
  | {
      readonly do: 'send';
      readonly isRepeatable: boolean;
      readonly failedAt: readonly number[];
      readonly request: AttributedRequest | undefined;
    }
  | { readonly do: 'end'; readonly which: number; readonly how: 'works' | 'fails' | 'nothing' }
  | { readonly do: 'pass'; readonly time: number }
  | { readonly do: 'resize'; readonly index: number; readonly capacity: number };

const request: fc.Arbitrary<AttributedRequest | undefined> = fc.option(
  fc.constantFrom('a', 'b').map((client) => ({ attributes: attributesOfClient(client) })),
  { nil: undefined },
);

const act: fc.Arbitrary<Act> = fc.oneof(
  fc.record({
    do: fc.constant('send' as const),
    isRepeatable: fc.boolean(),
    failedAt: fc.array(fc.nat(5), { maxLength: 2 }),
    request,
  }),
  fc.record({
    do: fc.constant('end' as const),
    which: fc.nat(100),
    how: fc.constantFrom('works' as const, 'fails' as const, 'fails' as const, 'nothing' as const),
  }),
  fc.record({ do: fc.constant('pass' as const), time: fc.nat(3000) }),
  fc.record({ do: fc.constant('resize' as const), index: fc.nat(5), capacity: fc.nat(6) }),
);

test('keeps an endpoint in rotation, ejects at most the share, and sends single trials, under any failures', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 6 }),
      fc.integer({ min: 0, max: 100 }),
      fc.array(act, { maxLength: 200 }),
      (count, percent, acts) => {
        const settings = {
          consecutiveGatewayErrors: 2,
          baseEjectionTime: 1000,
          maxEjectionTime: 3000,
          maxEjectionPercent: percent,
        };
        const rotation = new EndpointBalancer(
          count,
          4,
          settings,
          () => 0.5,
          () => undefined,
        );
        const open: {
          readonly index: number;
          readonly sentAt: number;
          readonly isTrial: boolean;
          readonly request: AttributedRequest | undefined;
        }[] = [];
        const capacities = Array.from({ length: count }, () => 4);
        const isFull = (index: number): boolean =>
          open.filter((each) => each.index === index).length >= (capacities[index] ?? 0);
        let now = 0;
        for (const step of acts) {
          now += 1;
          if (step.do === 'pass') now += step.time;
          if (step.do === 'resize' && step.index < count) {
            capacities[step.index] = step.capacity;
            rotation.setCapacity(step.index, step.capacity);
          }
          if (step.do === 'send') {
            const index = rotation.choose(new Set(step.failedAt), step.isRepeatable, now, step.request);
            const isTrial = rotation.isEjected(index);
            if (isTrial) {
              expect(step.failedAt).not.toContain(index);
              expect(open.filter((each) => each.isTrial && each.index === index)).toEqual([]);
            } else if (step.failedAt.includes(index)) {
              // The request has failed at every remaining endpoint.
              for (let other = 0; other < count; other += 1) {
                expect(rotation.isEjected(other) || step.failedAt.includes(other)).toBe(true);
              }
            }
            // It does not wait for a connection where another endpoint has a free one.
            const waits = !isTrial && isFull(index);
            for (let other = 0; other < (waits ? count : 0); other += 1) {
              const isAvoided = step.failedAt.includes(other) && !step.failedAt.includes(index);
              expect(rotation.isEjected(other) || isAvoided || isFull(other)).toBe(true);
            }
            rotation.onAttemptStart(index);
            open.push({ index, sentAt: now, isTrial, request: step.request });
          }
          if (step.do === 'end') {
            const [ended] = open.splice(step.which % Math.max(1, open.length), 1);
            if (ended === undefined) continue;
            const { index, sentAt, request } = ended;
            if (step.how === 'works') rotation.onSuccess(index, sentAt, now, request);
            else if (step.how === 'fails') rotation.onFailure(index, sentAt, now, request);
            else rotation.onInconclusive(index, sentAt);
            rotation.onAttemptEnd(index);
            if (step.how === 'works' && ended.isTrial) expect(rotation.isEjected(index)).toBe(false);
            // An ejected endpoint has returned its trial or has been ejected again, so other requests to it are no trial.
            if (!rotation.isEjected(index) || step.how !== 'nothing') {
              for (const [i, each] of open.entries()) if (each.index === index) open[i] = { ...each, isTrial: false };
            }
          }
          const out = Array.from({ length: count }, (_, i) => i).filter((i) => rotation.isEjected(i)).length;
          expect(out).toBeLessThanOrEqual(Math.min(count - 1, Math.ceil((count * percent) / 100)));
          if (out === 0) {
            const pending = Array.from({ length: count }, (_, i) => open.filter(({ index }) => index === i).length);
            const free = pending.map((busy, i) => Math.max(0, (capacities[i] ?? 0) - busy));
            expect(rotation.freeConnections()).toBe(free.reduce((sum, each) => sum + each, 0));
          }
        }
      },
    ),
    { numRuns: 400 },
  );
});
