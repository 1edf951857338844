/** Dispatchers of several workers in virtual time, with one store in their primary. */
import { expect, test } from 'vitest';
import { makeTableSchedule } from '../../../src/core/delivery/delivery-schedule.ts';
import { SCHEDULE_PRESETS } from '../../../src/core/delivery/schedule-presets.ts';
import type { RequestRecord } from '../../../src/core/events/request-record.ts';
import { DeliveryDispatcher } from '../../../src/http/delivery/delivery-dispatcher.ts';
import type { Route } from '../../../src/http/request/route.ts';
import { newDelivery } from '../../support/deliveries/delivery-place.ts';
import { type DeliveryWorker, startDeliveryWorkers } from '../../support/deliveries/delivery-workers.ts';
import { sqlitePlace } from '../../support/deliveries/sqlite-place.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const CONCURRENCY = 6;

const policy = {
  schedule: makeTableSchedule(SCHEDULE_PRESETS.alipay),
  acknowledgement: { statuses: new Set([200]), body: undefined },
  concurrency: CONCURRENCY,
};
// The dispatcher uses nothing else of a route.
const route = { name: '/hooks', delivery: policy } as unknown as Route;

interface Attempt {
  readonly at: number;
  readonly by: number;
  /** The receiver responds. */
  readonly respond: (status: number) => void;
}

/** Two workers, in front of a receiver that responds when the test does. */
async function startDispatching() {
  const place = sqlitePlace();
  const { clock } = place;
  const { primary, settle, startWorker, timers } = startDeliveryWorkers(place, CONCURRENCY);
  const attempts: Attempt[] = [];
  const open = new Set<Attempt>();
  let most = 0;
  const startOne = () => {
    const worker = startWorker();
    const dispatcher = new DeliveryDispatcher({
      store: worker.store,
      routes: () => [route],
      send: (_route, _request, response, onDone) => {
        const respond = (status: number): void => {
          open.delete(attempt);
          response.writeHead(status);
          response.end();
          onDone({ outcome: 'forwarded', status, attempts: 1 } as RequestRecord);
        };
        const attempt = { at: clock.time, by: worker.number, respond };
        attempts.push(attempt);
        open.add(attempt);
        most = Math.max(most, open.size);
      },
      wallClock: () => clock.time,
      schedule: (delay, run) => {
        if (delay > 0) throw new Error('the primary has the timer');
        const immediate = setImmediate(run);
        return () => clearImmediate(immediate);
      },
      random: () => 0.5,
      listen: () => undefined,
      isWokenWhenDue: true,
    });
    worker.store.onDue(() => dispatcher.wake());
    dispatcher.wake();
    return { worker, dispatcher };
  };
  /** Lets everything happen that needs no time. */
  const rest = async (): Promise<void> => {
    for (let turn = 0; turn < 5; turn += 1) await settle();
  };
  /** Runs until nothing is due before this time. @param onAttempts what the receiver does after each change */
  const runUntil = async (end: number, onAttempts: () => void = () => undefined): Promise<void> => {
    for (;;) {
      await rest();
      for (let seen = -1; seen < attempts.length; ) {
        seen = attempts.length;
        onAttempts();
        await rest();
      }
      const [next] = [...timers].toSorted((a, b) => a.at - b.at);
      if (next === undefined || next.at > end) return;
      clock.time = Math.max(clock.time, next.at);
      timers.delete(next);
      next.run();
    }
  };
  const respondToAll = (status: number) => (): void => {
    for (const attempt of open) attempt.respond(status);
  };
  const add = async ({ store }: DeliveryWorker, from: number, to: number, owner = 'ab12'): Promise<void> => {
    for (let n = from; n <= to; n += 1) store.add(newDelivery(n, { acceptedAt: clock.time, owner }), () => undefined);
    await rest();
  };
  const [first, second] = [startOne(), startOne()];
  await rest();
  return { clock, primary, attempts, open, runUntil, respondToAll, add, first, second, most: () => most };
}

test('a receiver that is away is asked by the documented schedule, by both workers in turn', async () => {
  const { clock, primary, attempts, runUntil, respondToAll, add, first } = await startDispatching();
  const start = clock.time;
  await add(first.worker, 1, 1);
  await runUntil(start + 72 * HOUR, respondToAll(503));
  const minutes = [0, 4, 14, 24, 84, 204, 564, 1464];
  expect(attempts.map(({ at }) => at - start)).toEqual(minutes.map((each) => each * MINUTE));
  expect(new Set(attempts.map(({ by }) => by)).size).toBe(2);
  expect(primary.store.totals.counts).toMatchObject({ waiting: 0, sending: 0, dead: 1 });
});

test('a burst is sent by both workers, without a pause, and no more at a time than one process sends', async () => {
  const { clock, primary, attempts, open, runUntil, respondToAll, add, first, most } = await startDispatching();
  const start = clock.time;
  await add(first.worker, 1, 40);
  await runUntil(start + 50);
  expect(open.size).toBe(CONCURRENCY);
  await runUntil(start + 1000, respondToAll(200));
  expect(attempts).toHaveLength(40);
  expect(most()).toBe(CONCURRENCY);
  expect(attempts.filter(({ by }) => by === 2).length).toBeGreaterThan(5);
  expect(attempts.at(-1)?.at).toBeLessThan(start + 100);
  expect(primary.store.totals.counts).toMatchObject({ waiting: 0, sending: 0, delivered: 40 });
});

test('what a worker is sending that is killed is sent by the other one, and counts as one attempt', async () => {
  const { clock, primary, attempts, open, runUntil, respondToAll, add, first } = await startDispatching();
  await add(first.worker, 1, 4);
  await runUntil(clock.time + 50);
  const cut = [...open].filter(({ by }) => by === first.worker.number);
  expect(cut.length).toBeGreaterThan(0);
  first.worker.kill();
  await runUntil(clock.time + 1000, () => {
    for (const attempt of open) if (attempt.by !== first.worker.number) attempt.respond(200);
  });
  expect(attempts).toHaveLength(4 + cut.length);
  expect(primary.store.totals.counts).toMatchObject({ waiting: 0, sending: 0, delivered: 4 });
  expect((await primary.store.list({ limit: 9 })).map((each) => each.attempts)).toEqual([1, 1, 1, 1]);
  respondToAll(200)(); // too late
  await runUntil(clock.time + 1000);
  expect(primary.store.totals.counts).toMatchObject({ delivered: 4 });
});

test('a worker that stops ends its attempts, and leaves what it takes at that moment to the other one', async () => {
  const { clock, primary, attempts, open, runUntil, respondToAll, add, first, second } = await startDispatching();
  await add(first.worker, 1, 9);
  await runUntil(clock.time + 50);
  expect(open.size).toBe(CONCURRENCY);
  first.dispatcher.stop();
  first.worker.store.stopTaking();
  const before = attempts.length;
  await runUntil(clock.time + 1000, respondToAll(200));
  expect(attempts.slice(before).map(({ by }) => by)).toEqual([...Array<number>(3).fill(second.worker.number)]);
  expect(primary.store.totals.counts).toMatchObject({ waiting: 0, sending: 0, delivered: 9 });
});

test('one client leaves a place to others in all workers together', async () => {
  const { clock, attempts, open, runUntil, respondToAll, add, first, second } = await startDispatching();
  await add(first.worker, 1, 1, 'few');
  await runUntil(clock.time + 50, respondToAll(200));
  await add(first.worker, 2, 30, 'many');
  await runUntil(clock.time + 5000);
  expect(open.size).toBe(CONCURRENCY - 1);
  const before = attempts.length;
  await add(second.worker, 31, 31, 'few');
  await runUntil(clock.time + 50);
  expect([open.size, attempts.length - before]).toEqual([CONCURRENCY, 1]);
});
