import { afterEach, expect, test, vi } from 'vitest';
import type { Sender } from '../../../src/http/upstream/pooled-send.ts';
import { UnsharedQueue } from '../../../src/http/upstream/http2/unshared-queue.ts';
import { UnsharedShares } from '../../../src/http/upstream/http2/unshared-shares.ts';

afterEach(() => void vi.useRealTimers());

interface Waiter {
  readonly sender: Sender;
  arrival: number;
  isDisplaced: boolean;
  waitedForConnection: boolean;
  previous: Waiter | undefined;
  next: Waiter | undefined;
}

/** @param count of connections, all of which are free */
function start(count: number) {
  const connections: { sender: Sender | undefined; readonly isConnecting: boolean }[] = [];
  for (let i = 0; i < count; i += 1) connections.push({ sender: undefined, isConnecting: false });
  const countFree = (): number => connections.filter(({ sender }) => sender === undefined).length;
  let ended = 0;
  const onYieldEnd = (): void => void (ended += 1);
  const clock = { now: () => Date.now() };
  const queue = new UnsharedQueue<Waiter>(connections, new UnsharedShares({ clock, countFree, onYieldEnd }));
  const serve = (): string | undefined => {
    const free = connections.find(({ sender }) => sender === undefined);
    const waiter = queue.head;
    if (free === undefined || waiter === undefined) return undefined;
    queue.remove(waiter);
    queue.onServed(waiter, free);
    return waiter.sender.client;
  };
  const end = (client: string): void => {
    const used = connections.find(({ sender }) => sender?.client === client);
    if (used?.sender === undefined) return;
    const { sender } = used;
    used.sender = undefined;
    queue.onReleased({ sender }, used);
  };
  const ask = (client: string, fairnessKey = client): boolean => queue.onAsked({ client, fairnessKey, classWeight: 1 });
  const wait = (client: string, times = 1, fairnessKey = client, classWeight = 1, isDisplaced = false): void => {
    for (let i = 0; i < times; i += 1) {
      queue.push({
        sender: { client, fairnessKey, classWeight },
        arrival: 0,
        isDisplaced,
        waitedForConnection: false,
        previous: undefined,
        next: undefined,
      });
    }
  };
  return { queue, connections, serve, end, ask, wait, yieldsEnded: () => ended };
}

test('a free connection is assigned to the client that has the fewest', () => {
  const { serve, end, wait } = start(4);
  wait('busy', 10);
  expect([serve(), serve(), serve(), serve(), serve()]).toEqual(['busy', 'busy', 'busy', 'busy', undefined]);
  wait('calm', 3);
  for (const expected of ['calm', 'calm', 'busy', 'busy']) {
    end('busy');
    expect(serve()).toBe(expected);
  }
});

test('a later request may overtake one that expects a connection', () => {
  const { queue, serve, wait } = start(2);
  wait('busy', 2);
  expect(serve()).toBe('busy');
  const second = queue.head;
  wait('calm');
  expect(serve()).toBe('calm');
  if (second !== undefined) queue.remove(second);
  expect(second?.waitedForConnection).toBe(true);
  wait('last');
  const last = queue.head;
  if (last !== undefined) queue.remove(last);
  expect(last?.waitedForConnection).toBe(false);
});

test('clients with equally many connections take turns', () => {
  const { serve, end, wait } = start(1);
  for (const client of ['a', 'b', 'c']) wait(client, 2);
  const served: (string | undefined)[] = [];
  for (let i = 0; i < 6; i += 1) {
    served.push(serve());
    end(served.at(-1) ?? '');
  }
  expect(served).toEqual(['a', 'b', 'c', 'a', 'b', 'c']);
});

test('the clients of one address count as one, and divide its connections', () => {
  const { serve, wait } = start(6);
  for (const key of ['key-1', 'key-2', 'key-3']) wait(key, 4, 'address');
  wait('calm', 4);
  const served = Array.from({ length: 6 }, serve);
  expect(served.filter((client) => client === 'calm')).toHaveLength(3);
  expect(new Set(served)).toEqual(new Set(['key-1', 'key-2', 'key-3', 'calm']));
});

test('a client of twice the weight gets twice as many connections', () => {
  const { serve, wait } = start(6);
  wait('light', 6);
  wait('heavy', 6, 'heavy', 2);
  expect(Array.from({ length: 6 }, serve).filter((client) => client === 'heavy')).toHaveLength(4);
});

test('removed, served and cleared requests leave no state', () => {
  const { queue, serve, wait } = start(2);
  wait('a', 2);
  wait('b', 1, 'address');
  const [first] = [queue.head];
  expect(first !== undefined && queue.remove(first)).toBe(true);
  expect(first !== undefined && queue.remove(first)).toBe(false);
  expect(serve()).toBe('a');
  expect([queue.length, queue.waiting, queue.lacking]).toEqual([1, 1, 1]);
  expect(queue.clear().map(({ sender }) => sender.client)).toEqual(['b']);
  expect([queue.length, queue.head]).toEqual([0, undefined]);
});

test('only displaced requests are taken back from the queue', () => {
  const { queue, wait, serve } = start(1);
  wait('a', 2, 'a', 1, true);
  wait('a');
  wait('b', 1, 'b', 1, true);
  expect([serve(), queue.displaced]).toEqual(['a', 2]);
  expect(queue.takeDisplaced().map(({ sender }) => sender.client)).toEqual(['b', 'a']);
  expect([queue.displaced, queue.waiting]).toEqual([0, 1]);
});

test('a connection that is being opened does not count as lacking', () => {
  const { queue, connections, wait } = start(1);
  wait('a', 3);
  connections.push({ sender: undefined, isConnecting: true });
  expect([queue.waiting, queue.lacking]).toEqual([3, 2]);
});

/** One client asks, then another one holds as many of 16 connections as it may. */
function startBesideOthers(classWeight = 1) {
  vi.useFakeTimers();
  const pool = start(16);
  pool.ask('calm');
  pool.ask('busy');
  pool.wait('busy', 40, 'busy', classWeight);
  const takeAll = (): number => {
    let taken = 0;
    while (pool.serve() !== undefined) taken += 1;
    return taken;
  };
  return { ...pool, takeAll };
}

test('a client that holds eight times the free connections leaves these to others that have asked', () => {
  const { takeAll, ask, wait, serve, end } = startBesideOthers();
  expect([takeAll(), ask('busy'), ask('calm')]).toEqual([15, false, true]);
  wait('calm');
  expect([serve(), serve()]).toEqual(['calm', undefined]);
  end('calm');
  expect(serve()).toBeUndefined();
  end('busy');
  expect([serve(), serve()]).toEqual(['busy', undefined]);
});

test('a client that is alone takes all connections', () => {
  const { ask, wait, serve } = start(16);
  expect(ask('busy')).toBe(true);
  wait('busy', 17);
  expect(Array.from({ length: 17 }, serve).filter((client) => client === 'busy')).toHaveLength(16);
});

test('a free connection that a client of great weight leaves to others goes to the next of these', () => {
  const { takeAll, wait, serve } = startBesideOthers(1000);
  expect(takeAll()).toBe(15);
  wait('calm');
  expect(serve()).toBe('calm');
});

test('others that have not asked for a minute get no free connection from a client that keeps its own', () => {
  const { takeAll, ask, serve, yieldsEnded } = startBesideOthers();
  takeAll();
  vi.advanceTimersByTime(30_000);
  ask('calm');
  vi.advanceTimersByTime(59_999);
  expect([serve(), yieldsEnded()]).toEqual([undefined, 1]);
  vi.advanceTimersByTime(1);
  expect([yieldsEnded(), serve()]).toEqual([2, 'busy']);
});

test('others that have not asked for four seconds get no free connection from a client that releases its own fast', () => {
  const { takeAll, end, serve, yieldsEnded } = startBesideOthers();
  takeAll();
  for (let i = 0; i < 8; i += 1) {
    vi.advanceTimersByTime(100);
    end('busy');
    serve();
  }
  expect(serve()).toBeUndefined();
  vi.advanceTimersByTime(4000 - 800 - 1);
  expect([serve(), yieldsEnded()]).toEqual([undefined, 0]);
  vi.advanceTimersByTime(1);
  expect([yieldsEnded(), serve()]).toEqual([1, 'busy']);
});

test('a request whose connection is left to others has waited for a connection', () => {
  const { takeAll, queue } = startBesideOthers();
  takeAll();
  expect(queue.clear().map(({ waitedForConnection }) => waitedForConnection)).toEqual(
    Array.from({ length: 25 }, () => true),
  );
});
