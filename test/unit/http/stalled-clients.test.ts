import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { AwaitedEnds } from '../../../src/core/admission/awaited-ends.ts';
import { Limit } from '../../../src/core/limits/limit.ts';
import { LocalMeter } from '../../../src/core/limits/local-meter.ts';
import { StalledClients } from '../../../src/http/response/stalled-clients.ts';
import { upstreamSettings } from '../../support/core/policy-builders.ts';

const makeLimit = (nested: string): Limit =>
  new Limit({ upstream: 'up', nested, scope: 'upstream', key: '' }, new LocalMeter(upstreamSettings().rate, () => 0.5));
const [OUTER, INNER, OTHER] = [makeLimit(''), makeLimit('inner'), makeLimit('other')];

/** A registry of clients that have stalled for long enough, with what the requests in the queue wait for. */
function start(awaited: () => readonly AwaitedEnds[]) {
  const ended: string[] = [];
  const clients = new StalledClients({
    clock: { now: () => performance.now() },
    connections: () => ({ totalConnections: () => 10, freeConnections: () => 5 }),
    awaitedEnds: awaited,
  });
  const add = (addressGroup: string, ...limits: readonly Limit[]): void =>
    clients.add({
      upstream: 'up',
      addressGroup,
      ticket: addressGroup,
      stalledSince: 0,
      givesWayAt: 0,
      holdsPlaceOf: (limit) => limits.includes(limit),
      abort: () => ended.push(addressGroup),
    });
  const queue = (): void => clients.onEvent({ type: 'decision', upstream: 'up', decision: 'queued', why: undefined });
  return { clients, add, queue, ended };
}

test('aborts only exchanges that use a place of the limit that requests wait for', async () => {
  let isAwaited = true;
  const { clients, add, queue, ended } = start(() => (isAwaited ? [{ limit: INNER, count: 5 }] : []));
  add('outer', OUTER);
  add('outer', OUTER);
  add('inner', OUTER, INNER);
  add('other', OUTER, OTHER);
  expect([clients.get('up').stalled?.(), clients.get('up').stalled?.(INNER)]).toEqual([4, 1]);
  queue();
  await sleep(20);
  isAwaited = false;
  expect(ended).toEqual(['inner']);
});

test('aborts none while requests wait for something else, and checks again soon', async () => {
  let awaited: AwaitedEnds[] = [];
  const { add, queue, ended } = start(() => awaited);
  add('many', OUTER);
  add('many', OUTER);
  add('one', OUTER);
  queue();
  await sleep(150);
  expect(ended).toEqual([]);
  awaited = [{ limit: undefined, count: 1 }];
  await sleep(150);
  awaited = [];
  expect(ended[0]).toBe('many');
});

test('aborts an exchange although others begin to stall meanwhile', async () => {
  const { add, queue, ended } = start(() => [{ limit: OUTER, count: 1 }]);
  queue();
  add('one', OUTER);
  const since = performance.now();
  for (; ended.length === 0 && performance.now() - since < 2000; await sleep(50)) add('more', OTHER);
  expect(ended).toEqual(['one']);
});

test('aborts exchanges on connections that requests outside the gate wait for, as many as are lacking', async () => {
  const { clients, add, ended } = start(() => [{ limit: undefined, count: 9 }]);
  add('holds');
  add('holds');
  add('holds no connection');
  let waiting = 3;
  clients.onAwaited('up', {
    get waiting() {
      return waiting;
    },
    get lacking() {
      return ended.length === 0 ? 1 : 0;
    },
    holders: () => new Set(['holds']),
  });
  await sleep(150);
  expect(ended).toEqual(['holds']);
  waiting = 0;
  await sleep(150);
  expect(ended).toEqual(['holds']);
});
