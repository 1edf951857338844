/** A block covers what the failed requests have in common; the rest continues as before. */
import { describe, expect, test } from 'vitest';
import { MajorityVote } from '../../../src/core/rate/breaker/majority-vote.ts';
import type { BlockedPart, RequestAttributes } from '../../../src/core/rate/breaker/request-attributes.ts';
import {
  ANY_REQUEST,
  matchesAttributes,
  classifyBlockedPart,
} from '../../../src/core/rate/breaker/request-attributes.ts';
import type { From } from '../../support/core/attributed-line.ts';
import { blockedBy, eight, from, Line } from '../../support/core/attributed-line.ts';

test.each<[string, (i: number) => From, BlockedPart]>([
  ['several addresses and paths', (i) => ({ address: `a${i}`, path: `/${i}` }), 'upstream'],
  ['several addresses on one path', (i) => ({ address: `a${i}`, path: '/x' }), 'path'],
  ['several addresses on paths that begin alike', (i) => ({ address: `a${i}`, path: `/x/${i}` }), 'path'],
  ['one address, with many keys, on several paths', (i) => ({ client: `k${i}`, path: `/${i}` }), 'address'],
  ['one address, with many keys, on one path', (i) => ({ client: `k${i}` }), 'address_path'],
  ['one client on several paths', (i) => ({ path: `/${i}` }), 'client'],
  ['one client on one path', () => ({}), 'client_path'],
  ['one credential from several addresses', (i) => ({ address: `a${i}`, path: `/${i}`, credential: 7 }), 'credential'],
])('errors of %s block that part', (_, of, part) => {
  expect(blockedBy(of).part).toBe(part);
});

test('requests without a connection block the whole upstream, whatever they have in common', () => {
  const line = new Line();
  for (const _ of eight) line.ask('unreachable', from());
  expect(line.part).toBe('upstream');
  expect(line.ask('failed', from({ address: 'other', path: '/other' }))).toBe(false);
  line.now += 1000;
  expect(line.ask('unreachable', from())).toBe(true);
  expect([line.part, line.rate.phase]).toEqual(['upstream', 'blocked']);
});

test('a block covers what most of the failures have in common, despite one unrelated failure', () => {
  const line = blockedBy((i) => (i === 3 ? { address: 'other', path: '/other' } : { client: `k${i}`, path: '/x' }));
  expect(line.part).toBe('address_path');
});

describe('a block of one path', () => {
  const line = (): Line => blockedBy((i) => ({ address: `a${i}`, path: '/x/1' }), { initialRate: 100 });

  test('passes other requests at the earlier rate, and is no blocked state for them', () => {
    const { rate } = line();
    expect(rate.phase).toBe('blocked');
    const other = from({ path: '/y' });
    expect([rate.delay(1010, other), rate.expectedDelay(1010, other)]).toEqual([0, 0]);
    expect(rate.admit(1010, other)).toBe(false);
    expect([rate.phase, rate.rate, rate.pace]).toEqual(['restoring', 100, 100]);
    expect(rate.breaker.probeAt).toBeUndefined();
    expect(rate.delay(1010, from({ path: '/x/1' }))).toBeGreaterThan(0);
  });

  test('does not end by acceptances of other requests, but by its probe', () => {
    const blocked = line();
    expect(blocked.ask('accepted', from({ path: '/y' }))).toBe(true);
    expect(blocked.part).toBe('path');
    blocked.now += 200;
    expect(blocked.ask('accepted', from({ path: '/x/1' }))).toBe(true);
    expect([blocked.part, blocked.rate.rate]).toEqual([undefined, 100]);
  });

  test('grows to the common part if other requests fail as well', () => {
    const blocked = line();
    for (const i of eight) blocked.ask('failed', from({ address: `b${i}`, path: `/y/${i}` }));
    expect(blocked.part).toBe('upstream');
  });

  test('is replaced by another block if something was accepted since it began', () => {
    const blocked = line();
    blocked.ask('accepted', from({ path: '/z' }));
    blocked.now += 3000;
    for (const i of eight) blocked.ask('failed', from({ address: `b${i}`, path: '/y/1' }));
    expect([blocked.part, blocked.rate.delay(blocked.now, from({ path: '/x/1' }))]).toEqual(['path', 0]);
  });

  test('expires five minutes after its probe was due, if others are accepted', () => {
    const blocked = line();
    blocked.ask('accepted', from({ path: '/z' }));
    blocked.now += 301_000;
    blocked.ask('accepted', from({ path: '/z' }));
    expect(blocked.part).toBeUndefined();
  });
});

test('the cut by rejections of one address is undone for the others', () => {
  const line = new Line();
  for (; line.now < 2000; line.now += 9) line.ask('accepted', from({ address: 'other' }));
  for (const i of eight) {
    line.ask('rejected', from({ client: `k${i}`, path: `/${i}` }), 300_000);
    line.now += 300;
  }
  expect([line.part, line.rate.phase]).toEqual(['address', 'blocked']);
  expect(line.ask('accepted', from({ address: 'other' }))).toBe(true);
  expect([line.rate.phase, line.rate.rate]).toEqual(['open', Number.POSITIVE_INFINITY]);
});

test('a held client is no probe before its time; others are when one is due, or after maxProbeDelay at the latest', () => {
  const line = blockedBy((i) => ({ address: `a${i}`, path: `/${i}` }), { maxProbeDelay: 5000 }, 300_000);
  const other = from({ address: 'other' });
  const begun = line.now - 1;
  expect(line.rate.delay(line.now, from({ address: 'a7' }))).toBe(begun + 300_010 - line.now);
  expect(line.rate.delay(line.now, other)).toBe(begun + 50 - line.now);
  line.now = begun + 50;
  expect(line.ask('failed', other, 300_000)).toBe(true);
  expect(line.rate.delay(line.now, from({ address: 'another' }))).toBe(begun + 50 + 5000 - line.now);
});

test('an address whose probe failed is not the next probe, if another address arrives in time', () => {
  const line = blockedBy((i) => ({ address: `a${i}`, path: `/${i}` }));
  const bad = (): RequestAttributes => from({ address: 'bad', client: `key at ${line.now}` });
  line.now = 2000;
  expect(line.ask('failed', bad())).toBe(true);
  const due = line.rate.delay(line.now, from({ address: 'other' }));
  expect(line.rate.delay(line.now, bad())).toBeGreaterThan(due);
  line.now += due;
  expect(line.ask('accepted', bad())).toBe(false);
  expect(line.ask('accepted', from({ address: 'other' }))).toBe(true);
  expect(line.rate.phase).not.toBe('blocked');
});

test('an address whose probe failed is the next probe half an interval later if no other arrives; those that had failed, a quarter', () => {
  const line = blockedBy((i) => ({ address: `a${i}`, path: `/${i}` }));
  const bad = from({ address: 'bad' });
  line.now = 2000;
  expect(line.ask('failed', bad)).toBe(true);
  expect(line.rate.delay(line.now, from({ address: 'a0' })) + 1).toBeCloseTo(1.25 * 75, 5);
  expect(line.rate.delay(line.now, bad) + 1).toBeCloseTo(1.5 * 75, 5);
  line.now += line.rate.delay(line.now, bad);
  expect(line.ask('accepted', bad)).toBe(true);
});

test('the clients of a blocked address that have failed are not the next probe, if another of its clients arrives', () => {
  const line = blockedBy((i) => ({ client: `k${i}`, path: `/${i}` }));
  line.now = 2000;
  expect(line.ask('failed', from({ client: 'k1', path: '/1' }))).toBe(true);
  expect(line.rate.delay(line.now, from({ client: 'k9', path: '/9' })) + 1).toBeCloseTo(75, 5);
  expect(line.rate.delay(line.now, from({ client: 'k2', path: '/2' })) + 1).toBeCloseTo(1.25 * 75, 5);
});

test('a client that alone is blocked is the next probe without an additional delay', () => {
  const line = blockedBy((i) => ({ path: `/${i}` }));
  line.now = 2000;
  expect(line.ask('failed', from({ path: '/1' }))).toBe(true);
  expect(line.rate.delay(line.now, from({ path: '/2' })) + 1).toBeCloseTo(75, 5);
});

test('a sender that fails for the first time during a block delays the others once', () => {
  const line = blockedBy((i) => ({ address: `a${i}`, path: `/${i}` }));
  line.now = 2000;
  expect(line.ask('failed', from({ address: 'new' }), 300_000)).toBe(true);
  expect(line.rate.delay(line.now, from({ address: 'other' })) + 1).toBe(30_000);
  line.now += 32_000;
  expect(line.ask('failed', from({ address: 'a1' }), 300_000)).toBe(true);
  expect(line.rate.delay(line.now, from({ address: 'other' }))).toBeLessThan(200);
});

describe('a majority vote', () => {
  test('without records selects no part', () => {
    expect(new MajorityVote(0.5).common).toEqual(ANY_REQUEST);
  });

  test('decays, so that recent failures count more', () => {
    const evidence = new MajorityVote(0.5);
    for (let i = 0; i < 4; i += 1) evidence.add(from({ path: '/x' }));
    evidence.halve();
    evidence.halve();
    for (let i = 0; i < 4; i += 1) evidence.add(from({ path: '/y' }));
    expect(matchesAttributes(evidence.common, from({ path: '/y' }))).toBe(true);
    expect(matchesAttributes(evidence.common, from({ path: '/x' }))).toBe(false);
    evidence.clear();
    expect(evidence.common).toEqual(ANY_REQUEST);
  });

  test('of requests without known parts selects all requests', () => {
    const evidence = new MajorityVote(0.5);
    for (let i = 0; i < 8; i += 1) evidence.add(undefined);
    expect(classifyBlockedPart(evidence.common)).toBe('upstream');
  });
});

describe('a part that is rejected while others are accepted', () => {
  /** Others are accepted twice for each request of the part, of which every second is rejected. */
  function rejectPart(line: Line, part: (i: number) => RequestAttributes, times = 40): number {
    let held = 0;
    for (let i = 0; i < times; i += 1) {
      if (!line.ask(i % 2 === 0 ? 'rejected' : 'accepted', part(i))) held += 1;
      line.now += 2;
      line.ask('accepted', from({ address: `v${i % 3}`, path: `/v/${i % 3}` }));
      line.now += 2;
      line.ask('accepted', from({ address: `v${(i + 1) % 3}`, path: `/v/${i % 3}`, credential: 2 }));
      line.now += 2;
    }
    return held;
  }

  test.each<[string, BlockedPart, (i: number) => From]>([
    ['an address with many keys', 'address', (i) => ({ client: `k${i}`, path: `/${i}` })],
    ['a client', 'client', (i) => ({ address: `a${i}`, client: 'k', path: `/${i}` })],
    ['a credential', 'credential', (i) => ({ address: `a${i}`, path: `/${i}`, credential: 7 })],
    ['a path', 'path', (i) => ({ address: `a${i}`, path: '/x/y' })],
  ])('%s is blocked, and the rate stays', (_, part, of) => {
    const line = new Line({ initialRate: 100 });
    expect(rejectPart(line, (i) => from(of(i)))).toBeGreaterThan(0);
    expect(line.rate.rate).toBeGreaterThanOrEqual(100);
    const seen: (BlockedPart | undefined)[] = [];
    for (let i = 0; i < 10; i += 1) {
      rejectPart(line, (n) => from(of(n)), 2);
      seen.push(line.part);
    }
    expect(new Set(seen.filter((one) => one !== undefined))).toEqual(new Set([part]));
    expect(line.rate.rate).toBeGreaterThanOrEqual(100);
  });

  test('does not limit the others if the limit is open', () => {
    const line = new Line();
    rejectPart(line, () => from({ address: 'a' }));
    expect(line.rate.rate).toBe(Number.POSITIVE_INFINITY);
  });

  test('is not recorded by a per-client limit, of which there may be thousands', () => {
    const line = new Line({ initialRate: 100, isPerClient: true });
    rejectPart(line, () => from({ path: '/x/y' }));
    expect(line.part).toBeUndefined();
    expect(line.rate.breaker.detector.needsAttributes).toBe(false);
    expect(line.rate.rate).toBeLessThan(95);
  });

  test('is not found if others are rejected as often, whatever the demand of one', () => {
    const line = new Line({ initialRate: 100 });
    for (let i = 0; i < 400; i += 1) {
      line.ask(i % 3 === 0 ? 'rejected' : 'accepted', from(i % 5 === 0 ? { address: `v${i % 4}` } : { address: 'a' }));
      line.now += 20;
      expect(line.part).toBeUndefined();
    }
    expect(line.rate.rate).toBeLessThan(80);
  });

  test('is not found if most requests are for that path', () => {
    const line = new Line({ initialRate: 100 });
    for (let i = 0; i < 100; i += 1) {
      for (const n of [0, 1, 2, 3, 4]) {
        line.ask(n % 3 === 0 ? 'rejected' : 'accepted', from({ address: `a${(n + i) % 5}`, path: '/x' }));
      }
      line.ask('accepted', from({ address: 'a', path: '/y' }));
      line.now += 100;
      expect(line.part).not.toBe('path');
    }
    expect(line.rate.rate).toBeLessThan(80);
  });
});
