import { expect, test } from 'vitest';
import { DeliveryOperations } from '../../../src/admin/operations/delivery-operations.ts';
import { DeliveriesUnavailable, type DeliveryStore } from '../../../src/core/delivery/delivery-store.ts';
import type { Delivery, DeliveryState } from '../../../src/core/delivery/delivery.ts';
import type { ProxyEvent } from '../../../src/core/events/proxy-events.ts';

const DELIVERY: Delivery = {
  kind: 'message',
  ...{
    id: '0199f3b0',
    route: '/hooks',
    upstream: 'shop',
    acceptedAt: 1000,
    owner: 'a1',
    sender: 'a1',
    eventId: undefined,
  },
  ...{ orderKey: undefined, state: { kind: 'waiting', until: 5000 }, attempts: 1, startedAt: 1000 },
  lastAttempt: undefined,
};

/** @param found what `find` returns in turn; the last one again and again */
function operate(accepts: boolean, found: readonly (Delivery | undefined)[]) {
  const events: ProxyEvent[] = [];
  const states = [...found];
  const store: Pick<DeliveryStore, 'find' | 'retry' | 'cancel'> & Partial<Pick<DeliveryStore, 'message' | 'result'>> = {
    find: () => Promise.resolve(states.length > 1 ? states.shift() : states[0]),
    retry: () => Promise.resolve(accepts),
    cancel: () => Promise.resolve(accepts),
  };
  const operations = new DeliveryOperations({
    deliveries: store as DeliveryStore,
    wallClock: () => 3000,
    listen: (event) => events.push(event),
  });
  return { operations, events, store };
}

const WHAT = { upstream: 'shop', route: '/hooks', delivery: '0199f3b0' };
const WAITING = { state: 'waiting', nextAttemptAt: '1970-01-01T00:00:05.000Z' };
const UNCONFIRMED = { type: 'operator-audit', by: 'me', outcome: 'unconfirmed', after: undefined };

const inState = (state: DeliveryState): Delivery => ({ ...DELIVERY, state });

test('a change that is not stored is not reported as done, but it is logged', async () => {
  const { operations, events } = operate(true, [DELIVERY]);
  const unavailable = {
    kind: 'unavailable',
    why: 'The change is not stored yet, because the database cannot be written. It is stored once this is possible, unless the process ends first.',
  };
  expect(await operations.retry('0199f3b0', 'me')).toEqual(unavailable);
  expect(await operations.cancel('0199f3b0', 'me')).toEqual(unavailable);
  const unconfirmed = { ...UNCONFIRMED, before: WAITING };
  expect(events).toEqual([
    { type: 'operator', by: 'me', action: 'retry', ...WHAT },
    { ...unconfirmed, action: { action: 'retry', ...WHAT } },
    { type: 'operator', by: 'me', action: 'cancel', ...WHAT },
    {
      ...{ type: 'delivery', route: '/hooks', event: 'canceled', age: 2000 },
      ended: { id: '0199f3b0', upstream: 'shop', attempts: 1, status: undefined, reason: undefined },
    },
    { ...unconfirmed, action: { action: 'cancel', ...WHAT } },
  ]);
});

test('a change that the store does not confirm, or does not show, is logged as unconfirmed', async () => {
  const { operations, events, store } = operate(true, [DELIVERY]);
  const { find } = store;
  const reject = () => Promise.reject(new DeliveriesUnavailable('Redis does not respond.'));
  const unavailable = { kind: 'unavailable', why: 'Redis does not respond.' };
  const audit = { ...UNCONFIRMED, before: WAITING, action: { action: 'retry', ...WHAT } };
  store.retry = () => {
    store.find = reject;
    return Promise.resolve(true);
  };
  expect(await operations.retry('0199f3b0', 'me')).toEqual(unavailable);
  expect(events.splice(0)).toEqual([{ type: 'operator', by: 'me', action: 'retry', ...WHAT }, audit]);
  store.find = find;
  store.retry = reject;
  expect(await operations.retry('0199f3b0', 'me')).toEqual(unavailable);
  expect(events).toEqual([audit]);
});

test('changes of one delivery at the same time are logged one after the other, each with its own states', async () => {
  const { operations, events, store } = operate(true, [DELIVERY]);
  let delivery = DELIVERY;
  store.find = () => Promise.resolve(delivery);
  store.cancel = () => {
    delivery = inState({ kind: 'canceled', at: 3000 });
    return Promise.resolve(true);
  };
  store.retry = () => {
    delivery = inState({ kind: 'waiting', until: 3000 });
    return Promise.resolve(true);
  };
  await Promise.all([operations.cancel('0199f3b0', 'me'), operations.retry('0199f3b0', 'me')]);
  const canceled = { state: 'canceled', nextAttemptAt: null };
  expect(events.filter(({ type }) => type === 'operator-audit')).toMatchObject([
    { action: { action: 'cancel' }, outcome: 'done', before: WAITING, after: canceled },
    {
      ...{ action: { action: 'retry' }, outcome: 'done', before: canceled },
      after: { state: 'waiting', nextAttemptAt: '1970-01-01T00:00:03.000Z' },
    },
  ]);
});

test('the response to a write is shown with its request, once the write is done', async () => {
  const { operations, store } = operate(true, [{ ...DELIVERY, kind: 'write', state: { kind: 'delivered', at: 2000 } }]);
  store.message = () => Promise.resolve(undefined);
  store.result = () => Promise.resolve({ status: 201, headers: ['X-Id', 'ch_1'], body: Buffer.from('paid') });
  expect(await operations.find('0199f3b0', { message: 'false' })).not.toHaveProperty('row.response');
  expect(await operations.find('0199f3b0', { message: 'true' })).toMatchObject({
    row: {
      kind: 'write',
      message: null,
      response: { status: 201, headers: [['X-Id', 'ch_1']], encoding: 'text', body: 'paid' },
    },
  });
  store.result = () => Promise.resolve({ status: 201, headers: [], body: undefined });
  expect(await operations.find('0199f3b0', { message: 'true' })).toMatchObject({ row: { response: { body: null } } });
  store.result = () => Promise.resolve(undefined);
  expect(await operations.find('0199f3b0', { message: 'true' })).toMatchObject({ row: { response: null } });
});

test('a retry of a waiting delivery is done once another time is stored, and names the order that it keeps', async () => {
  const ordered = { ...DELIVERY, orderKey: 'order-1' };
  const { operations } = operate(true, [ordered, { ...ordered, state: { kind: 'waiting', until: 3000 }, attempts: 0 }]);
  expect(await operations.retry('0199f3b0', 'me')).toMatchObject({
    kind: 'done',
    row: {
      ...{ state: 'waiting', nextAttemptAt: '1970-01-01T00:00:03.000Z', attempts: 0, orderKey: 'order-1' },
      notes: ['It is due now, with a new schedule.', 'Earlier deliveries with its order key are sent first.'],
    },
  });
});

test.each([
  [{ kind: 'sending', since: 2000 }, 'An attempt is in progress. Try again when it has ended.', undefined],
  [{ kind: 'waiting', until: 5000 }, 'Another change of this delivery is being stored. Try again.', undefined],
  [
    { kind: 'delivered', at: 2000 },
    'It is already delivered: it cannot be retried.',
    'It is already delivered: only a waiting delivery can be canceled.',
  ],
] as const)('a change is refused with the reason, and nothing is logged: %j', async (state, why, whyNotCanceled) => {
  const { operations, events } = operate(false, [inState(state)]);
  expect(await operations.retry('0199f3b0', 'me')).toEqual({ kind: 'refused', why });
  expect(await operations.cancel('0199f3b0', 'me')).toEqual({ kind: 'refused', why: whyNotCanceled ?? why });
  expect(events).toEqual([]);
});
