import { expect, test } from 'vitest';
import { makeTableSchedule } from '../../../src/core/delivery/delivery-schedule.ts';
import { SCHEDULE_PRESETS } from '../../../src/core/delivery/schedule-presets.ts';
import type { ProxyEvent } from '../../../src/core/events/proxy-events.ts';
import type { RequestRecord } from '../../../src/core/events/request-record.ts';
import { DeliveryDispatcher } from '../../../src/http/delivery/delivery-dispatcher.ts';
import type { DeliveryRequest } from '../../../src/http/delivery/delivery-request.ts';
import type { Route } from '../../../src/http/request/route.ts';
import { standardWebhookKey, standardWebhooksScheme } from '../../../src/http/webhooks/standard-webhooks-signature.ts';
import { verifySignature } from '../../../src/http/webhooks/verify-signature.ts';
import { sqlitePlace } from '../../support/deliveries/sqlite-place.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

const policy = {
  schedule: makeTableSchedule(SCHEDULE_PRESETS.alipay),
  acknowledgement: { statuses: new Set([200]), body: undefined },
  concurrency: 10,
};
type Answer = Partial<
  Pick<RequestRecord, 'outcome' | 'status' | 'reason' | 'attempts' | 'retryAfterSeconds' | 'detail'>
>;

/** A dispatcher in virtual time, in front of a receiver that answers at once. */
function startDispatching(answer: (now: number) => Answer, signingKeys?: readonly Buffer[]) {
  // The dispatcher uses nothing else of a route.
  const route = { name: '/hooks', delivery: { ...policy, signingKeys } } as unknown as Route;
  const place = sqlitePlace();
  const { store, settle, reportedDue } = place.start();
  const { clock } = place;
  const timers: { at: number; readonly run: () => void }[] = [];
  const sentAt: number[] = [];
  const sent: DeliveryRequest[] = [];
  const events: ProxyEvent[] = [];
  const dispatcher = new DeliveryDispatcher({
    store,
    routes: () => [route],
    send: (_route, request, response, onDone) => {
      sentAt.push(clock.time);
      sent.push(request);
      const record = { outcome: 'forwarded', status: 503, attempts: 1, ...answer(clock.time) } as RequestRecord;
      response.writeHead(record.status);
      response.end();
      onDone(record);
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
  /** Runs until nothing is due before this time. */
  const runUntil = async (end: number): Promise<void> => {
    for (;;) {
      await settle();
      if (reportedDue().length > 0) dispatcher.wake();
      const [next] = timers.toSorted((a, b) => a.at - b.at);
      if (next === undefined || next.at > end) return;
      timers.splice(timers.indexOf(next), 1);
      clock.time = Math.max(clock.time, next.at);
      next.run();
      await new Promise(setImmediate); // the store resolves what was asked
    }
  };
  const add = async (n: number): Promise<void> => {
    const message = {
      method: 'POST',
      target: '/hooks',
      headers: ['Host', 'shop'],
      body: Buffer.from('{}'),
      peer: '::1',
    };
    const times = { acceptedAt: clock.time, duplicatesUntil: clock.time };
    const names = {
      route: '/hooks',
      upstream: 'shop',
      owner: 'client',
      sender: 'client',
      eventId: undefined,
      orderKey: undefined,
    };
    store.add({ id: `delivery-${n}`, kind: 'message', ...names, ...times, message }, () => undefined);
    await settle();
    dispatcher.wake();
  };
  return { clock, store, sentAt, sent, events, runUntil, add, dispatcher };
}

test('a receiver that is away is asked by the documented schedule, to the second, and then given up', async () => {
  const { clock, store, sentAt, events, runUntil, add } = startDispatching(() => ({}));
  const start = clock.time;
  await add(1);
  await runUntil(start + 72 * HOUR);
  const minutes = [0, 4, 14, 24, 84, 204, 564, 1464];
  expect(sentAt.map((at) => at - start)).toEqual(minutes.map((each) => each * MINUTE));
  expect(await store.find('delivery-1')).toMatchObject({ attempts: 8, state: { kind: 'dead' } });
  const ended = { id: 'delivery-1', upstream: 'shop', attempts: 8, status: 503, reason: 'status_503' };
  expect(events.at(-1)).toEqual({ type: 'delivery', route: '/hooks', event: 'dead', age: 1464 * MINUTE, ended });
});

test('each attempt has a signature of its own time, however old the event is', async () => {
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
  const { clock, sentAt, sent, runUntil, add } = startDispatching(() => ({}), [standardWebhookKey(secret)]);
  await add(1);
  await runUntil(clock.time + 72 * HOUR);
  const scheme = standardWebhooksScheme([secret], 1000);
  const verified = sent.map(({ addedHeaders }, i) =>
    verifySignature(scheme, addedHeaders, Buffer.from('{}'), sentAt[i] ?? 0),
  );
  expect(verified).toEqual(Array.from({ length: 8 }, () => ({ kind: 'valid' })));
});

test('a receiver that is back gets what has waited, and each of it once', async () => {
  let isBack = false;
  const { clock, store, sentAt, runUntil, add } = startDispatching(() => (isBack ? { status: 200 } : {}));
  const start = clock.time;
  for (let n = 1; n <= 25; n += 1) await add(n);
  await runUntil(start + MINUTE);
  expect(sentAt).toHaveLength(25);
  isBack = true;
  await runUntil(start + 5 * MINUTE);
  expect(sentAt).toHaveLength(50);
  expect(store.totals.counts).toMatchObject({ waiting: 0, sending: 0, delivered: 25 });
});

test('an attempt that Tidegate refuses uses up nothing of the schedule', async () => {
  const refusal: Answer = { outcome: 'refused', status: 503, attempts: 0, retryAfterSeconds: 30, detail: 'blocked' };
  let refusals = 100;
  const { clock, store, sentAt, events, runUntil, add } = startDispatching(() =>
    (refusals -= 1) >= 0 ? refusal : { status: 200 },
  );
  const start = clock.time;
  await add(1);
  await runUntil(start + 2 * HOUR);
  expect(sentAt.at(-1)).toBe(start + 100 * 30_000);
  const results = events.flatMap((event) => (event.type === 'delivery-attempt' ? [event.reason] : []));
  expect(results).toEqual([...Array.from({ length: 100 }, () => 'postponed'), 'acknowledged']);
  expect(await store.find('delivery-1')).toMatchObject({ attempts: 1, state: { kind: 'delivered' } });
});

test('what is taken while it is stopped is sent by the next process', async () => {
  const { clock, store, sentAt, runUntil, add, dispatcher } = startDispatching(() => ({}));
  await add(1);
  const { takeDue } = store;
  store.takeDue = (...due) => {
    dispatcher.stop();
    return takeDue.apply(store, due);
  };
  await runUntil(clock.time + HOUR);
  expect(sentAt).toEqual([]);
  expect(store.totals.counts).toMatchObject({ waiting: 1, sending: 0 });
});

test('nothing is sent once it is stopped', async () => {
  const { clock, sentAt, runUntil, add, dispatcher } = startDispatching(() => ({}));
  await add(1);
  dispatcher.stop();
  await runUntil(clock.time + HOUR);
  expect(sentAt).toEqual([]);
});
