/** The places of a route are shared among the clients that have stored deliveries: dispatchers in virtual time. */
import { describe, expect, test } from 'vitest';
import { compileAsyncWrites } from '../../../src/config/compile/compile-async-writes.ts';
import { AsyncSchema } from '../../../src/config/schema/delivery/async-schema.ts';
import type { NewDelivery } from '../../../src/core/delivery/delivery-store.ts';
import type { RequestRecord } from '../../../src/core/events/request-record.ts';
import { DeliveryDispatcher } from '../../../src/http/delivery/delivery-dispatcher.ts';
import type { Route } from '../../../src/http/request/route.ts';
import { type DeliveryPlace, newDelivery } from './delivery-place.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const CONCURRENCY = 10;

interface Timer {
  readonly at: number;
  readonly run: () => void;
}

interface Sent {
  readonly by: string;
  readonly at: number;
  readonly waited: number;
}

/**
 * An upstream that takes this time for each write of a client, and then responds with this status.
 * @param takes by client
 */
async function startSending(
  place: DeliveryPlace,
  takes: (client: string) => number,
  concurrency = CONCURRENCY,
  status = 201,
) {
  const asyncWrites = compileAsyncWrites(AsyncSchema.parse({ concurrency }));
  // The dispatcher uses nothing else of a route.
  const target = { idempotency: { header: { name: 'Idempotency-Key', lower: 'idempotency-key' }, generates: false } };
  const route = { name: '/hooks', target, asyncWrites, replaySafetyOf: () => undefined } as unknown as Route;
  const { store, settle, reportedDue } = await place.start();
  const { clock } = place;
  const timers = new Set<Timer>();
  const pending = new Set<Promise<unknown>>();
  const sent: Sent[] = [];
  let most = 0;
  let sending = 0;
  let looks = 0;
  const schedule = (delay: number, run: () => void): (() => void) => {
    const timer = { at: clock.time + delay, run };
    timers.add(timer);
    return () => void timers.delete(timer);
  };
  const dispatcher = new DeliveryDispatcher({
    store: Object.assign(Object.create(store) as typeof store, {
      takeDue: (...input: Parameters<typeof store.takeDue>) => {
        looks += 1;
        const taken = store.takeDue(...input);
        pending.add(taken);
        return taken.finally(() => pending.delete(taken));
      },
      postpone: (...input: Parameters<typeof store.postpone>) => store.postpone(...input),
      end: (...input: Parameters<typeof store.end>) => store.end(...input),
    }),
    routes: () => [route],
    send: (_route, request, response, onDone) => {
      const by = String(request.headers['x-client']);
      sent.push({ by, at: clock.time, waited: clock.time - Number(request.headers['x-accepted']) });
      sending += 1;
      most = Math.max(most, sending);
      schedule(takes(by), () => {
        sending -= 1;
        response.writeHead(status, '', []);
        response.end();
        const record = { outcome: 'forwarded', status, attempts: 1 } as RequestRecord;
        onDone(record, {
          meaning: status === 201 ? 'answered' : 'not_processed',
          isLocked: false,
          wasAnswered: false,
        });
      });
    },
    wallClock: () => clock.time,
    schedule,
    random: () => 0.5,
    listen: () => undefined,
  });
  let last = 0;
  /** @param client of an address of its own, unless `sender` is given */
  const write = (client: string, count = 1, changes: Partial<NewDelivery> = {}): void => {
    for (let i = 0; i < count; i += 1) {
      last += 1;
      const { message } = newDelivery(last);
      const headers = ['Host', 'a', 'Idempotency-Key', `k${last}`, 'X-Client', client, 'X-Accepted', `${clock.time}`];
      const names = { kind: 'write', owner: client, acceptedAt: clock.time, message: { ...message, headers } } as const;
      store.add(newDelivery(last, { ...names, ...changes }), () => undefined);
    }
  };
  /** Runs until nothing is due before this time has passed. */
  const runFor = async (time: number): Promise<void> => {
    const end = clock.time + time;
    for (;;) {
      await settle();
      if (reportedDue().length > 0) dispatcher.wake();
      const [next] = [...timers].toSorted((a, b) => a.at - b.at);
      if (next === undefined || next.at > end) break;
      timers.delete(next);
      clock.time = Math.max(clock.time, next.at);
      next.run();
      await new Promise(setImmediate); // the dispatcher asks
      await Promise.all(pending);
      await new Promise(setImmediate); // it sends what it has taken
    }
    clock.time = end;
  };
  const sentBy = (client: string): readonly Sent[] => sent.filter(({ by }) => by === client);
  return { store, clock, write, runFor, sent, sentBy, most: () => most, looks: () => looks };
}

export function describeFairDispatch(name: string, makePlace: () => DeliveryPlace): void {
  describe(`with deliveries in ${name}`, () => {
    test('a client whose writes hang delays those of others only until one of its attempts has ended', async () => {
      const { write, runFor, sentBy } = await startSending(
        makePlace(),
        (client) => (client === 'hanging' ? 10 * SECOND : 50),
        CONCURRENCY,
        503,
      );
      for (let second = 0; second < 120; second += 1) {
        write('hanging', 2);
        await runFor(SECOND / 2);
        write('other');
        await runFor(SECOND / 2);
      }
      const first = new Map<number, number>();
      for (const { at, waited } of sentBy('other')) if (!first.has(at - waited)) first.set(at - waited, waited);
      const waits = [...first.values()];
      expect(waits).toHaveLength(120);
      expect(waits.slice(30)).toEqual(Array<number>(90).fill(0));
      expect(Math.max(...waits)).toBeLessThanOrEqual(10 * SECOND);
    });

    test('a backlog of one client does not delay the writes of another', async () => {
      const { write, runFor, sentBy } = await startSending(makePlace(), () => SECOND);
      write('many', 500);
      await runFor(10 * SECOND);
      expect(sentBy('many')).toHaveLength(110);
      write('few', 3);
      await runFor(5 * SECOND);
      expect(sentBy('few').map(({ waited }) => waited)).toEqual([SECOND, SECOND, SECOND]);
    });

    test('a flood of one sender delays another one by no more than an attempt', async () => {
      const { write, runFor, sentBy } = await startSending(makePlace(), () => 50);
      write('flood', 2000);
      await runFor(SECOND);
      for (let n = 0; n < 10; n += 1) {
        write('flood', 20);
        write('few');
        await runFor(SECOND / 10);
      }
      expect(sentBy('few')).toHaveLength(10);
      expect(Math.max(...sentBy('few').map(({ waited }) => waited))).toBeLessThanOrEqual(50);
    });

    test('clients with a backlog each have equal parts of the places', async () => {
      const { write, runFor, sentBy } = await startSending(makePlace(), () => SECOND);
      for (const client of ['a', 'b', 'c']) write(client, 300);
      await runFor(59 * SECOND);
      for (const client of ['a', 'b', 'c']) {
        expect(sentBy(client).length).toBeGreaterThanOrEqual(199);
        expect(sentBy(client).length).toBeLessThanOrEqual(201);
      }
    });

    test('clients of one address have one part, whatever credentials they invent', async () => {
      const { write, runFor, sent, sentBy } = await startSending(makePlace(), () => SECOND);
      for (let i = 0; i < 300; i += 1) write(`invented-${i}`, 1, { sender: 'address' });
      write('other', 300);
      await runFor(29 * SECOND);
      expect([sentBy('other').length, sent.length]).toEqual([150, 300]);
    });

    test('clients of one address share its part by turns', async () => {
      const { write, runFor, sentBy } = await startSending(makePlace(), () => SECOND);
      write('many', 300, { sender: 'address' });
      for (let i = 0; i < 30; i += 1) write(`few-${i}`, 1, { sender: 'address' });
      await runFor(3 * SECOND);
      for (let i = 0; i < 30; i += 1) expect([i, sentBy(`few-${i}`).length]).toEqual([i, 1]);
    });

    test('one client uses all places if no other was active for a minute, and else leaves a ninth, at least one', async () => {
      const { write, runFor, sentBy, most, looks } = await startSending(makePlace(), () => 10 * MINUTE, 20);
      write('alone', 100);
      await runFor(0);
      expect([sentBy('alone').length, most()]).toEqual([20, 20]);
      const others = await startSending(makePlace(), (client) => (client === 'short' ? 1 : 10 * MINUTE), 20);
      others.write('short');
      await others.runFor(1);
      others.write('long', 100);
      await others.runFor(59 * SECOND);
      expect(others.sentBy('long')).toHaveLength(18);
      expect([looks(), others.looks()].every((each) => each < 100)).toBe(true);
      await others.runFor(2 * SECOND);
      expect(others.sentBy('long')).toHaveLength(20);
    });

    test('a single place is not shared, and goes to clients by turns', async () => {
      const { write, runFor, sent } = await startSending(makePlace(), () => SECOND, 1);
      write('a', 5);
      write('b', 3);
      write('c', 1);
      await runFor(8 * SECOND);
      expect(sent.map(({ by }) => by).join('')).toBe('abcababaa');
    });

    test('an order key keeps its order among clients', async () => {
      const { write, runFor, sent } = await startSending(makePlace(), () => SECOND);
      for (const client of ['a', 'b', 'a', 'c', 'b']) write(client, 1, { orderKey: 'object' });
      write('d', 20);
      await runFor(10 * SECOND);
      const ordered = sent.filter(({ by }) => by !== 'd');
      expect(ordered.map(({ by }) => by).join('')).toBe('abacb');
      expect(ordered.map(({ at }) => at - (ordered[0]?.at ?? 0))).toEqual([0, 1, 2, 3, 4].map((each) => each * SECOND));
    });

    test('the write of a client is found behind thousands of others that are not due, and behind a backlog', async () => {
      const { store, write, runFor, sentBy, clock } = await startSending(makePlace(), () => SECOND);
      for (let i = 0; i < 3000; i += 1) write(`later-${i}`);
      await runFor(0);
      for (const { deliveries } of [await store.takeDue('/hooks', clock.time, 3000)]) {
        for (const { delivery } of deliveries) store.postpone(delivery.id, clock.time + 60 * MINUTE, undefined);
      }
      await runFor(SECOND);
      write('many', 2000);
      await runFor(SECOND);
      write('z-few');
      await runFor(30 * SECOND);
      expect(sentBy('z-few')).toHaveLength(1);
      expect(sentBy('many').length).toBeGreaterThan(250);
    });
  });
}
