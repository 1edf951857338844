import { expect, test } from 'vitest';
import { KeyOperations } from '../../../src/admin/operations/key-operations.ts';
import type { OperatorAction } from '../../../src/core/events/operator-events.ts';
import type { ProxyEvent } from '../../../src/core/events/proxy-events.ts';
import type {
  KeyInspection,
  KeysUnavailable,
  WriteRemoval,
  WriteView,
} from '../../../src/core/idempotency/key-inspection.ts';

const WRITE: WriteView = {
  ...{ id: '0123456789abcdef', upstream: 'till', state: 'answered', firstSentAt: 500, endpoint: undefined },
  ...{ requests: 0, responses: 0, finalFor: 1 },
};

function operate(removal: WriteRemoval | KeysUnavailable | undefined, more: Partial<KeyInspection> = {}) {
  const events: ProxyEvent[] = [];
  const operations = new KeyOperations({
    keys: removal && {
      list: () => Promise.resolve({ total: 1, matching: 1, writes: [WRITE], isTruncated: false }),
      find: () => Promise.resolve({ kind: 'found', write: WRITE }),
      forget: () => Promise.resolve(removal),
      ...more,
    },
    clocks: () => ({ now: 700, origin: 1_000_000 }),
    listen: (event) => events.push(event),
  });
  return { operations, events };
}

const FORGET: OperatorAction = { action: 'forget', upstream: 'till', write: WRITE.id };

/** @param after undefined: the removal is not confirmed */
function reported(after: { readonly state: string } | undefined): ProxyEvent[] {
  return [
    { type: 'operator', by: 'me', ...FORGET },
    {
      ...{ type: 'operator-audit', by: 'me', action: FORGET, outcome: after === undefined ? 'unconfirmed' : 'done' },
      ...{ before: { state: WRITE.state }, after },
    },
  ];
}

test('a removal is reported with the state before and after it', async () => {
  const { operations, events } = operate({ kind: 'forgotten', write: WRITE });
  expect(await operations.forget('0123', 'me')).toMatchObject({ kind: 'done' });
  expect(events).toEqual(reported({ state: 'forgotten' }));
});

test('a key that remains in the database is not reported as forgotten, but its removal from this process is', async () => {
  const { operations, events } = operate({ kind: 'not_stored', write: WRITE });
  const result = await operations.forget('0123', 'me');
  expect(result).toMatchObject({
    kind: 'unavailable',
    why: expect.stringContaining('the database cannot be written') as string,
  });
  expect(events).toEqual(reported(undefined));
});

test.each([
  [{ requests: 1 }, '1 request has it'],
  [{ requests: 3, responses: 1 }, '3 requests have it or wait for it, and 1 response is being sent'],
  [{ responses: 2 }, '2 responses are being sent'],
])('a request to forget a key in use is refused with what uses the key: %j', async (use, words) => {
  const { operations, events } = operate({ kind: 'in_progress', write: { ...WRITE, ...use } });
  const why = `The key is in use: ${words}. It can be forgotten after that.`;
  expect(await operations.forget('0123', 'me')).toEqual({ kind: 'refused', why });
  expect(events).toEqual([]);
});

test('times are on the wall clock, and unknown values are null', async () => {
  const { operations } = operate({ kind: 'forgotten', write: WRITE });
  const row = { ...WRITE, firstSentAt: '1970-01-01T00:16:40.500Z', endpoint: null };
  expect(await operations.find('0123')).toEqual({ kind: 'done', row });
  const page = { total: 1, matching: 1, truncated: false, keys: [row] };
  expect(await operations.list({ order: 'newest', limit: 1 })).toEqual({ kind: 'done', row: page });
});

test('a removal that the store did not confirm is not reported as done, but it is logged', async () => {
  const { operations, events } = operate({ kind: 'unconfirmed', write: WRITE });
  expect(await operations.forget('0123', 'me')).toMatchObject({
    kind: 'unavailable',
    why: expect.stringContaining('Redis did not confirm that the key is forgotten') as string,
  });
  expect(events).toEqual(reported(undefined));
});

test('a removal that a worker may still carry out is logged as unconfirmed, though its write is unknown', async () => {
  const { operations, events } = operate({ kind: 'unconfirmed', write: undefined });
  expect(await operations.forget('0123', 'me')).toMatchObject({ kind: 'unavailable' });
  const action = { action: 'forget', upstream: undefined, write: '0123' };
  expect(events).toEqual([
    { type: 'operator-audit', by: 'me', action, outcome: 'unconfirmed', before: undefined, after: undefined },
  ]);
});

test('a store that does not respond makes each operation unavailable, with the reason, and nothing is logged', async () => {
  const unavailable: KeysUnavailable = { kind: 'unavailable', why: 'Redis does not respond.' };
  const { operations, events } = operate(unavailable, {
    list: () => Promise.resolve(unavailable),
    find: () => Promise.resolve(unavailable),
  });
  const results = [
    await operations.list({ order: 'newest', limit: 1 }),
    await operations.find('0123'),
    await operations.forget('0123', 'me'),
  ];
  expect(results).toEqual(results.map(() => unavailable));
  expect(events).toEqual([]);
});

test('times of a store with a clock of its own are not shifted, and a number that is not counted is null', async () => {
  const { operations } = operate(
    { kind: 'forgotten', write: WRITE },
    {
      timeOrigin: 0,
      list: () => Promise.resolve({ total: undefined, matching: 2, writes: [WRITE], isTruncated: true }),
    },
  );
  const row = { ...WRITE, firstSentAt: '1970-01-01T00:00:00.500Z', endpoint: null };
  const page = { total: null, matching: 2, truncated: true, keys: [row] };
  expect(await operations.list({ order: 'newest', limit: 1 })).toEqual({ kind: 'done', row: page });
});

test('a worker whose primary has the keys refuses every operation with the reason, instead of reporting no keys', async () => {
  const { operations } = operate(undefined);
  const results = [
    await operations.list({ order: 'newest', limit: 1 }),
    await operations.find('0123'),
    await operations.forget('0123', 'me'),
  ];
  const why = 'The primary of this worker has the keys: use its admin port.';
  expect(results).toEqual(results.map(() => ({ kind: 'refused', why })));
});
