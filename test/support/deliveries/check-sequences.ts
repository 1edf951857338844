import * as fc from 'fast-check';
import { expect } from 'vitest';
import type { DeliveryFilter } from '../../../src/core/delivery/delivery-store.ts';
import type { DeliveryEnd } from '../../../src/core/delivery/delivery.ts';
import { DeliveryModel } from './delivery-model.ts';
import {
  addAll,
  deliveryId,
  type DeliveryPlace,
  newDelivery,
  nextDueAt,
  numberOf,
  type StoreProcess,
  takeNumbers,
} from './delivery-place.ts';

const ROUTES = ['/a', '/b'] as const;
const STATES = ['waiting', 'sending', 'delivered', 'dead', 'canceled', 'unknown'] as const;

const route = fc.constantFrom(...ROUTES);
/** Which of the deliveries so far. */
const which = fc.nat({ max: 30 });
const addition = fc.record({
  route,
  orderKey: fc.option(fc.constantFrom('k', 'l'), { nil: undefined, freq: 1 }),
  eventId: fc.option(fc.constantFrom('e', 'f', 'g'), { nil: undefined, freq: 1 }),
});
const operation = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('add'), additions: fc.array(addition, { maxLength: 5 }) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('take'), route, limit: fc.integer({ min: 1, max: 4 }) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('postpone'), which, delay: fc.nat({ max: 400 }) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('end'),
      which,
      end: fc.constantFrom<DeliveryEnd>('delivered', 'dead', 'unknown'),
      hasResult: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('cancel', 'retry'), which }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('wait'), time: fc.nat({ max: 700 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('restart') }) },
);
const filter = fc.record({
  states: fc.option(fc.subarray([...STATES]), { nil: undefined }),
  route: fc.option(route, { nil: undefined }),
  after: fc.option(which, { nil: undefined }),
  order: fc.constantFrom('oldest', 'newest'),
  limit: fc.integer({ min: 1, max: 6 }),
});

/** Any sequence of changes, restarts and removals leaves the deliveries that a simple model has. */
export async function checkSequences(makePlace: () => DeliveryPlace, numRuns: number): Promise<void> {
  await fc.assert(
    fc.asyncProperty(fc.array(operation, { minLength: 5, maxLength: 60 }), fc.array(filter), async (steps, filters) => {
      const place = makePlace();
      Object.assign(place.keptFor, { delivered: 900, dead: 1500, canceled: 600, unknown: 1500 });
      const model = new DeliveryModel(place.keptFor);
      const { clock } = place;
      let process = await place.start();
      let last = 0;
      for (const step of steps) {
        const { store } = process;
        const now = clock.time;
        if ('additions' in step) {
          const added = step.additions.map((each) => ({ ...each, n: (last += 1) }));
          const results = await addAll(
            process,
            ...added.map(({ n, ...changes }) => newDelivery(n, { ...changes, acceptedAt: now })),
          );
          const numbers = added.map((each) => model.add(each, now));
          const expected = numbers.map((n, i) => (n === added[i]?.n ? undefined : deliveryId(n)));
          expect(results.map((result) => (result?.kind === 'duplicate' ? result.id : undefined))).toEqual(expected);
        } else if ('limit' in step) {
          const numbers = await takeNumbers(process, now, step.limit, step.route);
          expect(numbers).toEqual(model.take(step.route, now, step.limit));
        } else if ('delay' in step) {
          const attempt = { at: now, took: 1, status: 500, reason: 'not_acknowledged' };
          store.postpone(deliveryId(step.which), now + step.delay, attempt);
          model.postpone(step.which, now + step.delay, now);
        } else if ('end' in step) {
          const result = step.hasResult ? { status: 200, headers: [], body: Buffer.from(`${step.which}`) } : undefined;
          const attempt = { at: now, took: 1, status: 200, reason: undefined };
          store.end(deliveryId(step.which), step.end, now, attempt, result);
          model.end(step.which, step.end, now, step.hasResult);
        } else if ('which' in step) {
          const operate = step.kind === 'cancel' ? 'cancel' : 'retry';
          expect(await store[operate](deliveryId(step.which), now)).toBe(model[operate](step.which, now));
        } else if ('time' in step) clock.time += step.time;
        else {
          process = await place.start();
          model.restart();
        }
        await process.settle();
        model.expire(clock.time);
        await expectSame(process.store, model, last);
        for (const each of filters) await expectSameList(process.store, model, each);
      }
    }),
    { numRuns },
  );
}

type Store = StoreProcess['store'];

async function expectSame(store: Store, model: DeliveryModel, last: number): Promise<void> {
  const stored = await Promise.all(Array.from({ length: last + 1 }, (_, n) => store.find(deliveryId(n))));
  const facts = stored.map((each) => each && [each.state.kind, each.attempts, each.startedAt]);
  const expected = stored.map((_, n) => model.find(n));
  expect(facts).toEqual(expected.map((each) => each && [each.state, each.attempts, each.startedAt]));
  const results = await Promise.all(stored.map((_, n) => store.result(deliveryId(n))));
  expect(results.map((result) => result !== undefined)).toEqual(expected.map((each) => each?.hasResult ?? false));
  const times = stored.map((each) => each && ('until' in each.state ? each.state.until : undefined));
  expect(times).toEqual(expected.map((each) => (each?.state === 'waiting' ? each.until : undefined)));
  expect(await Promise.all(ROUTES.map((each) => nextDueAt(store, each)))).toEqual(
    ROUTES.map((each) => model.nextDueAt(each)),
  );
  const count = (state: string): number => model.rows.filter((row) => row.state === state).length;
  expect(store.totals.counts).toEqual(Object.fromEntries(STATES.map((state) => [state, count(state)])));
}

interface ListFilter extends Pick<Required<DeliveryFilter>, 'limit' | 'order'> {
  readonly states: DeliveryFilter['states'] | undefined;
  readonly route: string | undefined;
  readonly after: number | undefined;
}

async function expectSameList(
  store: Store,
  model: DeliveryModel,
  { states, route, after, order, limit }: ListFilter,
): Promise<void> {
  const isAfter = (n: number): boolean => after === undefined || (order === 'newest' ? n < after : n > after);
  const wanted = model.rows
    .filter((row) => (states?.includes(row.state) ?? true) && (route ?? row.route) === row.route && isAfter(row.n))
    .toSorted((a, b) => (order === 'newest' ? b.n - a.n : a.n - b.n));
  const found = await store.list({
    ...{ limit, order },
    ...(states === undefined ? {} : { states }),
    ...(route === undefined ? {} : { route }),
    ...(after === undefined ? {} : { after: deliveryId(after) }),
  });
  expect(found.map(({ id }) => numberOf(id))).toEqual(wanted.slice(0, limit).map(({ n }) => n));
}
