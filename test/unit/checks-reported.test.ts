import { describe, expect, test } from 'vitest';
import { check } from '../../src/core/exchange/external-authorization.ts';
import type { Answer, Step } from '../../src/core/exchange/steps.ts';
import type { LimitRef } from '../../src/core/limits/limit-ref.ts';
import type { Verdict } from '../../src/core/exchange/attempt-outcome.ts';
import { FixedWindow } from '../../src/simulator/limit-models/fixed-window.ts';
import { Gcra } from '../../src/simulator/limit-models/gcra.ts';
import type { Loop } from '../support/checks.ts';
import { ask, perSecond, report, runLoop } from '../support/checks.ts';
import { limitedTo, upstreamSettings, World } from '../support/policy.ts';

const FIFTY: Omit<Loop, 'reports'> = {
  demand: 100,
  clients: ['a', 'b', 'c', 'd'],
  limit: new Gcra({ kind: 'gcra', rate: 50, burst: 5 }),
  latency: 100,
  end: 300_000,
};
const fifty = (): Gcra => new Gcra({ kind: 'gcra', rate: 50, burst: 5 });
const startingAt = (initialRate: number) => ({
  upstream: { rate: { ...upstreamSettings().rate, initialRate } },
});
const REFUSALS = (status: number): boolean => status === 429;
const ALL = (): boolean => true;
const NONE = (): boolean => false;
function everyTenth(): Loop['reports'] {
  let answers = 0;
  return (status) => status === 429 || (answers += 1) % 10 === 0;
}

test('a check asks once: it passes, is turned away, or its client has gone', () => {
  const play = (...answers: Answer[]): { asked: Step['do'][]; verdict: Verdict } => {
    const script = check(1000);
    const asked: Step['do'][] = [];
    let result = script.next();
    for (const answer of answers) {
      if (result.done === true) throw new Error('it has ended');
      asked.push(result.value.do);
      result = script.next(answer);
    }
    if (result.done !== true) throw new Error('it has not ended');
    return { asked, verdict: result.value };
  };
  const passed = play({ kind: 'admitted', at: 0 }, { kind: 'granted', at: 0 });
  expect(passed).toMatchObject({ asked: ['admit', 'grant'], verdict: { kind: 'forward' } });
  const held = play({ kind: 'refused', why: 'held', retryAfter: 700, at: 0 });
  expect(held).toMatchObject({ asked: ['admit'], verdict: { kind: 'refuse', why: 'held', retryAfter: 700 } });
  expect(play({ kind: 'gone', at: 0 }).verdict.kind).toBe('gone');
  // Who asks stays when we go.
  expect(play({ kind: 'refused', why: 'draining', retryAfter: 1000, at: 0 }).verdict.kind).toBe('forward');
});

describe('where nothing is reported', () => {
  test('a limit that is known is kept to, and never grows', () => {
    const world = new World(startingAt(20));
    const came = runLoop(world, { ...FIFTY, limit: fifty(), reports: NONE });
    expect(perSecond(came, 200, 0, 10_000)).toBeCloseTo(20, 0);
    expect(perSecond(came, 200, 240_000, 300_000)).toBeCloseTo(20, 1);
    expect(world.limit.meter.rate(world.now)).toBe(20);
  });

  test('without one all pass: nobody knows of a limit', () => {
    const world = new World();
    const came = runLoop(world, { ...FIFTY, limit: fifty(), reports: NONE, end: 20_000 });
    expect(came).toHaveLength(2000);
    expect(world.limit.meter.phase).toBe('open');
  });
});

describe.each([
  ['every answer', () => ALL],
  ['every refusal and one success in ten', () => everyTenth()],
])('where %s is reported', (_, reporter) => {
  const reports = reporter();

  test('what passes comes to the limit, and little more is sent', () => {
    const world = new World();
    const came = runLoop(world, { ...FIFTY, limit: fifty(), reports });
    expect(perSecond(came, 200, 10_000, 300_000)).toBeGreaterThan(49);
    expect(perSecond(came, 429, 10_000, 300_000)).toBeLessThan(0.5);
  });

  test('a limit that has fallen to a third is found again', () => {
    const limit = fifty();
    const world = new World();
    world.at(60_000, () => limit.retarget(17, world.now));
    const came = runLoop(world, { ...FIFTY, limit, reports });
    expect(perSecond(came, 200, 90_000, 300_000)).toBeGreaterThan(0.95 * 17);
    expect(perSecond(came, 429, 90_000, 300_000)).toBeLessThan(0.5);
  });

  test('a window that is used up is waited for, and asked about by one at a time', () => {
    const world = new World();
    const limit = new FixedWindow({ kind: 'fixed-window', limit: 300, window: 10_000 });
    const came = runLoop(world, { ...FIFTY, limit, reports });
    expect(perSecond(came, 200, 60_000, 300_000)).toBeGreaterThan(0.85 * 30);
    expect(perSecond(came, 429, 60_000, 300_000)).toBeLessThan(1);
  });
});

describe('where refusals alone are reported', () => {
  test('what passes comes to the limit, and little more is sent', () => {
    const world = new World();
    const came = runLoop(world, { ...FIFTY, limit: fifty(), reports: REFUSALS });
    expect(perSecond(came, 200, 10_000, 300_000)).toBeGreaterThan(49);
    expect(perSecond(came, 429, 10_000, 300_000)).toBeLessThan(0.5);
  });

  test('a limit that has fallen is found; one that has risen is not, and what was felt is kept to', () => {
    const limit = fifty();
    const world = new World();
    world.at(60_000, () => limit.retarget(17, world.now));
    world.at(150_000, () => limit.retarget(50, world.now));
    const came = runLoop(world, { ...FIFTY, limit, reports: REFUSALS });
    expect(perSecond(came, 200, 90_000, 150_000)).toBeGreaterThan(0.95 * 17);
    expect(perSecond(came, 200, 240_000, 300_000)).toBeGreaterThan(0.95 * 17);
    expect(perSecond(came, 200, 240_000, 300_000)).toBeLessThan(20);
  });
});

test('what is known to be too low grows where successes are reported too', () => {
  const world = new World(startingAt(20));
  const came = runLoop(world, { ...FIFTY, limit: fifty(), reports: ALL });
  expect(perSecond(came, 200, 120_000, 300_000)).toBeGreaterThan(49);
});

test('when nobody reports any more there is no growth, and ten minutes later what was learned is forgotten', () => {
  const world = new World(startingAt(20));
  const reports = (): boolean => world.now < 60_000;
  runLoop(world, { ...FIFTY, limit: fifty(), reports, end: 60_000 });
  const { ceiling } = world.limit.meter;
  expect(ceiling).toBeGreaterThan(40);
  for (const end of [120_000, 300_000, 600_000]) {
    runLoop(world, { ...FIFTY, limit: fifty(), reports, end });
    expect(world.limit.meter.rate(world.now)).toBeLessThan(1.1 * ceiling);
  }
  runLoop(world, { ...FIFTY, limit: fifty(), reports, end: 661_000 });
  expect(world.limit.meter.rate(world.now)).toBe(20);
});

test('one report of a refusal cuts, and silence after it brings back what there was', () => {
  const world = new World(startingAt(50));
  let reported = 0;
  const reports = (status: number): boolean => status === 200 && world.now > 10_000 && (reported += 1) === 1;
  runLoop(world, { ...FIFTY, limit: fifty(), reports: NONE, end: 10_000 });
  report(world, 429, world.now - 100);
  expect(world.limit.meter.phase).toBe('backoff');
  const cutTo = world.limit.meter.rate(world.now);
  expect(cutTo).toBeLessThan(50);
  runLoop(world, { ...FIFTY, limit: fifty(), reports: NONE, end: 15_000 });
  expect(world.limit.meter.phase).toBe('restoring');
  runLoop(world, { ...FIFTY, limit: fifty(), reports, end: 120_000 });
  expect(world.limit.meter.rate(world.now)).toBeGreaterThan(49);
});

test('a client that the upstream asked to wait is held for as long, and the others are not', () => {
  const world = new World();
  report(world, 429, world.now, { client: 'a', retryAfter: 5000 });
  const told: Record<string, Verdict> = {};
  for (const client of ['a', 'b']) ask(world, { client }, (verdict) => (told[client] = verdict));
  expect(told['a']).toMatchObject({ kind: 'refuse', why: 'held', retryAfter: 5000 });
  expect(told['b']).toMatchObject({ kind: 'forward' });
  world.now = 5001;
  ask(world, { client: 'a' }, (verdict) => (told['a'] = verdict));
  expect(told['a']).toMatchObject({ kind: 'forward' });
});

test('a report is no arrival: it raises nobody’s demand', () => {
  const world = new World();
  for (let i = 0; i < 50; i += 1) report(world, 200, world.now, { client: 'a' });
  const slot = world.store.clients.visit('a', world.now, 'up');
  expect(world.store.clients.demand(slot, world.now)).toBe(0);
  world.store.clients.leave(slot);
});

test('a limit of the client’s own is made by the first refusal that is reported of it', () => {
  const world = new World({ upstream: { scope: 'client' } });
  const own: LimitRef = { upstream: 'up', nested: '', scope: 'client', key: 'a' };
  ask(world, { client: 'a', refs: [own] }, () => undefined);
  expect(world.store.find(own)).toBeUndefined();
  report(world, 429, world.now, { client: 'a', refs: [own] });
  expect(world.store.find(own)?.meter.phase).toBe('backoff');
});

describe('a check', () => {
  test('that may wait is let pass in its turn; one that may not is told when to come back', () => {
    const world = new World({ upstream: limitedTo(2) });
    const told: (Verdict | undefined)[] = [];
    const tell = (i: number) => (verdict: Verdict) => {
      told[i] = verdict;
    };
    ask(world, {}, tell(0));
    ask(world, {}, tell(1));
    ask(world, { wait: 0 }, tell(2));
    expect(told[0]).toMatchObject({ kind: 'forward' });
    expect(told[1]).toBeUndefined();
    expect(told[2]).toMatchObject({ kind: 'refuse' });
    world.runUntil(501);
    expect(told[1]).toMatchObject({ kind: 'forward' });
  });

  test('leaves nothing in flight, and one whose client has gone takes no token', () => {
    const world = new World({ upstream: limitedTo(2) });
    ask(world, {}, () => undefined);
    expect(world.limit.meter.inFlight).toBe(0);
    ask(world, {}, () => undefined).gone();
    let told: Verdict | undefined;
    ask(world, {}, (verdict) => (told = verdict));
    world.runUntil(501);
    expect(told).toMatchObject({ kind: 'forward' });
  });

  test('where it is observed, passes, and it is told what would have been', () => {
    const world = new World({ upstream: limitedTo(2), mode: 'observe' });
    const drives = [1, 2, 3].map(() => ask(world, { wait: 0 }, (verdict) => expect(verdict.kind).toBe('forward')));
    expect(drives.map(({ wouldHave }) => wouldHave?.decision)).toEqual(['passed', 'refused', 'refused']);
  });
});
