/** Writes that are sent later, in virtual time: when they are tried again, and how they end. */
import { expect, test } from 'vitest';
import { compileAsyncWrites } from '../../../src/config/compile/compile-async-writes.ts';
import { AsyncSchema } from '../../../src/config/schema/delivery/async-schema.ts';
import type { ProxyEvent } from '../../../src/core/events/proxy-events.ts';
import type { RequestRecord } from '../../../src/core/events/request-record.ts';
import { DeliveryDispatcher } from '../../../src/http/delivery/delivery-dispatcher.ts';
import type { WriteAttempt } from '../../../src/http/delivery/judge-write.ts';
import type { Route } from '../../../src/http/request/route.ts';
import { deliveryId, newDelivery } from '../../support/deliveries/delivery-place.ts';
import { sqlitePlace } from '../../support/deliveries/sqlite-place.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

interface Answer {
  readonly record?: Partial<RequestRecord>;
  readonly meaning: WriteAttempt['meaning'];
  readonly body?: string;
}

const UNAVAILABLE: Answer = { record: { status: 503 }, meaning: 'not_processed' };
const LOST: Answer = {
  record: { outcome: 'unknown', status: 504, reason: 'timeout', detail: 'no response' },
  meaning: 'may_have_taken_effect',
};
const CHARGED: Answer = { record: { status: 201 }, meaning: 'answered', body: 'charged' };

/** One write in virtual time, of a route with these settings, that was accepted at the present time. */
function startWriting(answer: (attempt: number) => Answer, settings = {}) {
  const asyncWrites = compileAsyncWrites(AsyncSchema.parse(settings));
  // The dispatcher uses nothing else of a route.
  const target = { idempotency: { header: { name: 'Idempotency-Key', lower: 'idempotency-key' }, generates: false } };
  const route = { name: '/hooks', target, asyncWrites, replaySafetyOf: () => safety.value } as unknown as Route;
  const safety: { value: 'never' | undefined } = { value: undefined };
  const place = sqlitePlace();
  const { store, settle, reportedDue } = place.start();
  const { clock } = place;
  const start = clock.time;
  const timers: { readonly at: number; readonly run: () => void }[] = [];
  const sentAt: number[] = [];
  const events: ProxyEvent[] = [];
  const dispatcher = new DeliveryDispatcher({
    store,
    routes: () => [route],
    send: (_route, _request, response, onDone) => {
      sentAt.push(clock.time - start);
      const { record, meaning, body = '' } = answer(sentAt.length);
      const ended = { outcome: 'forwarded', status: 200, attempts: 1, ...record } as RequestRecord;
      response.writeHead(ended.status, '', ['X-Charge', '1', 'Set-Cookie', 'a=b']);
      response.end(Buffer.from(body));
      onDone(ended, { meaning, isLocked: false, wasAnswered: false });
    },
    wallClock: () => clock.time,
    schedule: (delay, run) => {
      const timer = { at: clock.time + delay, run };
      timers.push(timer);
      return () => void (timers.includes(timer) && timers.splice(timers.indexOf(timer), 1));
    },
    random: () => 0.5,
    listen: (event) => events.push(event),
  });
  const { message } = newDelivery(1);
  const headers = [...message.headers, 'Idempotency-Key', 'k1'];
  store.add(newDelivery(1, { kind: 'write', acceptedAt: start, message: { ...message, headers } }), () => undefined);
  /** Runs until nothing is due before this time. */
  const runFor = async (time: number): Promise<void> => {
    for (;;) {
      await settle();
      if (reportedDue().length > 0) dispatcher.wake();
      const [next] = timers.toSorted((a, b) => a.at - b.at);
      if (next === undefined || next.at > start + time) return;
      timers.splice(timers.indexOf(next), 1);
      clock.time = Math.max(clock.time, next.at);
      next.run();
      await new Promise(setImmediate); // the store resolves what was asked
    }
  };
  const find = () => store.find(deliveryId(1));
  const result = () => store.result(deliveryId(1));
  return { clock, runFor, find, result, sentAt, events, start, target, safety };
}

test('a write whose provider is away is tried for an hour, and then has failed', async () => {
  const { runFor, find, result, sentAt, events } = startWriting(() => UNAVAILABLE);
  await runFor(HOUR);
  expect(sentAt.slice(0, 4)).toEqual([0, 5000, 15_000, 35_000]);
  expect(sentAt.length).toBeGreaterThan(15);
  expect(sentAt.at(-1)).toBeLessThanOrEqual(HOUR);
  expect(await find()).toMatchObject({ state: { kind: 'dead' }, lastAttempt: { reason: 'status_503' } });
  expect([await result(), events.at(-1)]).toMatchObject([undefined, { type: 'delivery', event: 'dead' }]);
});

test('a write whose provider is back is done, and its response is kept without cookies', async () => {
  const { runFor, find, result, sentAt } = startWriting((n) => (n < 5 ? UNAVAILABLE : CHARGED));
  await runFor(HOUR);
  expect(sentAt).toHaveLength(5);
  expect(await find()).toMatchObject({ state: { kind: 'delivered' }, attempts: 5 });
  expect(await result()).toEqual({ status: 201, headers: ['X-Charge', '1'], body: Buffer.from('charged') });
});

test('a response that is longer than what is kept has no body', async () => {
  const { runFor, result } = startWriting(() => CHARGED, { maxResponse: '6B' });
  await runFor(0);
  expect(await result()).toEqual({ status: 201, headers: ['X-Charge', '1'], body: undefined });
});

test('a write that may have taken effect once ends as unknown, whatever happens to its other attempts', async () => {
  const { runFor, find, sentAt } = startWriting((n) => (n === 2 ? LOST : UNAVAILABLE));
  await runFor(HOUR);
  expect(sentAt.length).toBeGreaterThan(15);
  expect(await find()).toMatchObject({ state: { kind: 'unknown' }, lastAttempt: { reason: 'unknown_status_503' } });
});

test('a write that may have taken effect is done once a response settles it', async () => {
  const { runFor, find } = startWriting((n) => (n === 1 ? LOST : CHARGED));
  await runFor(MINUTE);
  expect(await find()).toMatchObject({ state: { kind: 'delivered' }, attempts: 2 });
});

test('a write whose key has expired ends at once', async () => {
  const expired = { outcome: 'refused', status: 409, reason: 'key_expired', attempts: 0, detail: 'expired' } as const;
  const { runFor, find, sentAt } = startWriting(() => ({ record: expired, meaning: undefined }));
  await runFor(HOUR);
  expect(sentAt).toEqual([0]);
  expect(await find()).toMatchObject({ state: { kind: 'unknown' } });
});

test('a write is sent at least once after a long time without a process', async () => {
  const { clock, runFor, find, sentAt } = startWriting(() => UNAVAILABLE, { schedule: { delays: ['1s'] } });
  clock.time += 5 * HOUR;
  await runFor(6 * HOUR);
  expect(sentAt).toEqual([5 * HOUR, 5 * HOUR + 1000]);
  expect(await find()).toMatchObject({ state: { kind: 'dead' }, attempts: 2 });
});

test.each<[string, (writing: ReturnType<typeof startWriting>) => void]>([
  ['key_missing', ({ target }) => (target.idempotency.header = { name: 'X-Key', lower: 'x-key' })],
  ['not_repeatable', ({ safety }) => (safety.value = 'never')],
])(
  'a write that a new configuration would send without the protection of its key ends: %s',
  async (why, reconfigure) => {
    const writing = startWriting(() => LOST);
    await writing.runFor(0);
    expect(writing.sentAt).toHaveLength(1);
    reconfigure(writing);
    await writing.runFor(HOUR);
    expect(writing.sentAt).toHaveLength(1);
    expect(await writing.find()).toMatchObject({
      state: { kind: 'unknown' },
      lastAttempt: { reason: `unknown_${why}` },
    });
  },
);
