import { expect, test } from 'vitest';
import { InFlightReads } from '../../../src/http/coalescing/in-flight-reads.ts';
import { JoinedRead } from '../../../src/http/coalescing/joined-read.ts';
import { ReplayMemory } from '../../../src/http/overload/replay-memory.ts';
import type { RoutedRequest } from '../../../src/http/request/routed-request.ts';

/** Reads of a process with a clock of the test. */
function makeReads(replayLimit = 1 << 20) {
  const clock = { time: 0, now: () => clock.time };
  const reads = new InFlightReads(clock);
  const joined: string[] = [];
  const replayMemory = new ReplayMemory(replayLimit);
  const join = (name: string, path = '/a'): JoinedRead => {
    const request = { hasBody: false, verb: 'GET', target: path, rawHeaders: [], headers: {} };
    const route = { name: '/', target: { name: 'api' }, coalescing: 'credentials' };
    const routed = {
      request,
      route,
      client: { hash: 'c', addressGroup: undefined },
      upgrade: undefined,
      requestId: name,
    };
    const read = new JoinedRead({ reads, replayMemory, clock }, routed as unknown as RoutedRequest, {
      onJoined: (equalId, hasWaited) =>
        joined.push(`${name} ${equalId === undefined ? 'sent' : 'shared'}${hasWaited ? ' late' : ''}`),
    });
    read.begin(60_000);
    return read;
  };
  return { clock, reads, joined, join, replayMemory };
}

const outcome = { kind: 'response', status: 200, hints: {}, took: 1 } as never;
const headOf = (headers: string[] = [], status = 200) =>
  ({ status, reasonPhrase: 'OK', headers, httpVersion: '1.1' }) as const;

test('remembers no reads once all have ended', () => {
  const { reads, joined, join } = makeReads();
  const one = join('one');
  one.onSent();
  const two = join('two');
  join('three').leave();
  expect(reads.size).toBe(1);
  expect(one.capture(headOf(), outcome)).toBeUndefined();
  two.onSent();
  two.end(false);
  expect([joined, reads.size]).toEqual([['one sent', 'two sent late'], 0]);
});

test('moves the others behind those that came since, when the client of the request that is sent has gone', () => {
  const { reads, joined, join } = makeReads();
  const one = join('one');
  join('two');
  one.onSent();
  const three = join('three');
  one.end(true);
  three.onSent();
  const capture = three.capture(headOf(), outcome);
  capture?.end();
  expect(joined).toEqual(['one sent', 'three sent late', 'two shared late']);
  expect(reads.size).toBe(0);
});

test('keeps reads apart for ten seconds after a response for one request', () => {
  const { clock, joined, join } = makeReads();
  const one = join('one');
  one.onSent();
  one.capture(headOf(['Set-Cookie', 'a=1']), outcome);
  clock.time = 9999;
  join('two');
  join('three');
  clock.time = 10_000;
  join('four');
  join('five');
  expect(joined).toEqual(['one sent', 'two sent', 'three sent', 'four sent']);
});

test('remembers 1000 kinds of such reads', () => {
  const { joined, join } = makeReads();
  for (let n = 0; n <= 1000; n += 1) {
    const read = join('first', `/${n}`);
    read.onSent();
    read.capture(headOf(['Vary', '*']), outcome);
  }
  joined.length = 0;
  for (const n of [0, 1, 1000]) for (const name of ['a', 'b']) join(`${name}${n}`, `/${n}`);
  expect(joined).toEqual(['a0 sent', 'a1 sent', 'b1 sent', 'a1000 sent', 'b1000 sent']);
});

test('sends all when there is no memory for the response, and gives it back otherwise', () => {
  const short = makeReads(1);
  const one = short.join('one');
  short.join('two');
  one.onSent();
  expect(one.capture(headOf(), outcome)).toBeUndefined();
  expect(short.joined).toEqual(['one sent', 'two sent late']);
  const { join, joined, replayMemory } = makeReads();
  const leader = join('one');
  join('two');
  leader.onSent();
  const capture = leader.capture(headOf(), outcome);
  expect(replayMemory.used).toBeGreaterThan(0);
  capture?.add(Buffer.from('x'));
  capture?.end();
  expect([replayMemory.used, joined]).toEqual([0, ['one sent', 'two shared late']]);
});
