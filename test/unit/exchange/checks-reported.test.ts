import { describe, expect, test } from 'vitest';
import { runAuthorizationCheck } from '../../../src/core/exchange/external-authorization.ts';
import type { StepResult, ExchangeStep } from '../../../src/core/exchange/steps.ts';
import type { LimitRef } from '../../../src/core/limits/limit-ref.ts';
import type { ExchangeVerdict } from '../../../src/core/exchange/exchange-verdict.ts';
import { FixedWindow } from '../../../src/simulator/limit-models/fixed-window.ts';
import { Gcra } from '../../../src/simulator/limit-models/gcra.ts';
import type { CheckLoopOptions } from '../../support/core/authorization-checks.ts';
import { requestCheck, ratePerSecond, reportOutcome, runCheckLoop } from '../../support/core/authorization-checks.ts';
import { limitedTo, upstreamSettings } from '../../support/core/policy-builders.ts';
import { World } from '../../support/core/world.ts';

const FIFTY: Omit<CheckLoopOptions, 'reports'> = {
  demand: 100,
  clients: ['a', 'b', 'c', 'd'],
  limit: new Gcra({ kind: 'gcra', rate: 50, burst: 5 }),
  latency: 100,
  end: 150_000,
};
const fifty = (): Gcra => new Gcra({ kind: 'gcra', rate: 50, burst: 5 });
const startingAt = (initialRate: number) => ({
  upstream: { rate: { ...upstreamSettings().rate, initialRate } },
});
const REFUSALS = (status: number): boolean => status === 429;
const ALL = (): boolean => true;
const NONE = (): boolean => false;
function everyTenth(): CheckLoopOptions['reports'] {
  let answers = 0;
  return (status) => status === 429 || (answers += 1) % 10 === 0;
}

test('a check takes one step: it is admitted, it is refused, or its client has left', () => {
  const play = (...answers: StepResult[]): { actions: ExchangeStep['do'][]; verdict: ExchangeVerdict } => {
    const script = runAuthorizationCheck(1000);
    const actions: ExchangeStep['do'][] = [];
    let result = script.next();
    for (const answer of answers) {
      if (result.done === true) throw new Error('it has ended');
      actions.push(result.value.do);
      result = script.next(answer);
    }
    if (result.done !== true) throw new Error('it has not ended');
    return { actions, verdict: result.value };
  };
  const passed = play({ kind: 'admitted', at: 0 }, { kind: 'granted', at: 0 });
  expect(passed).toMatchObject({ actions: ['admit', 'grant'], verdict: { kind: 'forward' } });
  const held = play({ kind: 'refused', why: 'held', retryAfterMs: 700, at: 0 });
  expect(held).toMatchObject({ actions: ['admit'], verdict: { kind: 'refuse', why: 'held', retryAfterMs: 700 } });
  expect(play({ kind: 'gone', at: 0 }).verdict.kind).toBe('gone');
  // The client of a check stays connected during a shutdown.
  expect(play({ kind: 'refused', why: 'draining', retryAfterMs: 1000, at: 0 }).verdict.kind).toBe('forward');
});

describe('without reports', () => {
  test('a configured limit is enforced, and never grows', () => {
    const world = new World(startingAt(20));
    const came = runCheckLoop(world, { ...FIFTY, limit: fifty(), reports: NONE });
    expect(ratePerSecond(came, 200, 0, 10_000)).toBeCloseTo(20, 0);
    expect(ratePerSecond(came, 200, 120_000, 150_000)).toBeCloseTo(20, 1);
    expect(world.limit.meter.rate(world.now)).toBe(20);
  });

  test('without a configured limit all checks are admitted', () => {
    const world = new World();
    const came = runCheckLoop(world, { ...FIFTY, limit: fifty(), reports: NONE, end: 20_000 });
    expect(came).toHaveLength(2000);
    expect(world.limit.meter.phase).toBe('open');
  });
});

describe.each([
  ['every answer', () => ALL],
  ['every refusal and one success in ten', () => everyTenth()],
])('with reports of %s', (_, reporter) => {
  const reports = reporter();

  test('admissions converge to the limit, and few requests exceed it', () => {
    const world = new World();
    const came = runCheckLoop(world, { ...FIFTY, limit: fifty(), reports });
    expect(ratePerSecond(came, 200, 10_000, 150_000)).toBeGreaterThan(49);
    expect(ratePerSecond(came, 429, 10_000, 150_000)).toBeLessThan(0.5);
  });

  test('a limit that has fallen to a third is learned again', () => {
    const limit = fifty();
    const world = new World();
    world.at(60_000, () => limit.setLimit(17, world.now));
    const came = runCheckLoop(world, { ...FIFTY, limit, reports });
    expect(ratePerSecond(came, 200, 90_000, 150_000)).toBeGreaterThan(0.95 * 17);
    expect(ratePerSecond(came, 429, 90_000, 150_000)).toBeLessThan(0.5);
  });

  test('an exhausted window stops admissions, and is probed by one request at a time', () => {
    const world = new World();
    const limit = new FixedWindow({ kind: 'fixed-window', limit: 300, window: 10_000 });
    const came = runCheckLoop(world, { ...FIFTY, limit, reports });
    expect(ratePerSecond(came, 200, 60_000, 150_000)).toBeGreaterThan(0.85 * 30);
    expect(ratePerSecond(came, 429, 60_000, 150_000)).toBeLessThan(1);
  });
});

describe('with reports of refusals only', () => {
  test('admissions converge to the limit, and few requests exceed it', () => {
    const world = new World();
    const came = runCheckLoop(world, { ...FIFTY, limit: fifty(), reports: REFUSALS });
    expect(ratePerSecond(came, 200, 10_000, 150_000)).toBeGreaterThan(49);
    expect(ratePerSecond(came, 429, 10_000, 150_000)).toBeLessThan(0.5);
  });

  test('a lowered limit is learned; a raised limit is not, and the learned rate stays', () => {
    const limit = fifty();
    const world = new World();
    world.at(60_000, () => limit.setLimit(17, world.now));
    world.at(150_000, () => limit.setLimit(50, world.now));
    const came = runCheckLoop(world, { ...FIFTY, limit, reports: REFUSALS, end: 300_000 });
    expect(ratePerSecond(came, 200, 90_000, 150_000)).toBeGreaterThan(0.95 * 17);
    expect(ratePerSecond(came, 200, 240_000, 300_000)).toBeGreaterThan(0.95 * 17);
    expect(ratePerSecond(came, 200, 240_000, 300_000)).toBeLessThan(20);
  });
});

test('a rate configured too low grows if successes are reported too', () => {
  const world = new World(startingAt(20));
  const came = runCheckLoop(world, { ...FIFTY, limit: fifty(), reports: ALL });
  expect(ratePerSecond(came, 200, 120_000, 150_000)).toBeGreaterThan(49);
});

test('growth stops when reports stop, and the learned rate is dropped ten minutes later', () => {
  const world = new World(startingAt(20));
  const reports = (): boolean => world.now < 60_000;
  runCheckLoop(world, { ...FIFTY, limit: fifty(), reports, end: 60_000 });
  const { ceiling } = world.limit.meter;
  expect(ceiling).toBeGreaterThan(40);
  for (const end of [120_000, 300_000, 600_000]) {
    runCheckLoop(world, { ...FIFTY, limit: fifty(), reports, end });
    expect(world.limit.meter.rate(world.now)).toBeLessThan(1.1 * ceiling);
  }
  runCheckLoop(world, { ...FIFTY, limit: fifty(), reports, end: 661_000 });
  expect(world.limit.meter.rate(world.now)).toBe(20);
});

test('one report of a refusal cuts the rate, and a time without reports restores it', () => {
  const world = new World(startingAt(50));
  let reported = 0;
  const reports = (status: number): boolean => status === 200 && world.now > 10_000 && (reported += 1) === 1;
  runCheckLoop(world, { ...FIFTY, limit: fifty(), reports: NONE, end: 10_000 });
  reportOutcome(world, 429, world.now - 100);
  expect(world.limit.meter.phase).toBe('backoff');
  const cutTo = world.limit.meter.rate(world.now);
  expect(cutTo).toBeLessThan(50);
  runCheckLoop(world, { ...FIFTY, limit: fifty(), reports: NONE, end: 15_000 });
  expect(world.limit.meter.phase).toBe('restoring');
  runCheckLoop(world, { ...FIFTY, limit: fifty(), reports, end: 120_000 });
  expect(world.limit.meter.rate(world.now)).toBeGreaterThan(49);
});

test('a client that the upstream asked to wait is held for that time, and other clients are not', () => {
  const world = new World();
  reportOutcome(world, 429, world.now, { client: 'a', retryAfter: 5000 });
  const verdicts: Record<string, ExchangeVerdict> = {};
  for (const client of ['a', 'b']) requestCheck(world, { client }, (verdict) => (verdicts[client] = verdict));
  expect(verdicts['a']).toMatchObject({ kind: 'refuse', why: 'held', retryAfterMs: 5000 });
  expect(verdicts['b']).toMatchObject({ kind: 'forward' });
  world.now = 5001;
  requestCheck(world, { client: 'a' }, (verdict) => (verdicts['a'] = verdict));
  expect(verdicts['a']).toMatchObject({ kind: 'forward' });
});

test('a report is no arrival, so it does not raise the demand of a client', () => {
  const world = new World();
  for (let i = 0; i < 50; i += 1) reportOutcome(world, 200, world.now, { client: 'a' });
  const slot = world.store.clients.visit('a', world.now, 'up');
  expect(world.store.clients.demand(slot, world.now)).toBe(0);
  world.store.clients.leave(slot);
});

test('the first reported refusal creates a per-client limit', () => {
  const world = new World({ upstream: { scope: 'client' } });
  const own: LimitRef = { upstream: 'up', nested: '', scope: 'client', key: 'a' };
  requestCheck(world, { client: 'a', refs: [own] }, () => undefined);
  expect(world.store.findLimit(own)).toBeUndefined();
  reportOutcome(world, 429, world.now, { client: 'a', refs: [own] });
  expect(world.store.findLimit(own)?.meter.phase).toBe('backoff');
});

describe('a check', () => {
  test('is admitted in its turn if it may wait, and otherwise gets a Retry-After', () => {
    const world = new World({ upstream: limitedTo(2) });
    const verdicts: (ExchangeVerdict | undefined)[] = [];
    const record = (i: number) => (verdict: ExchangeVerdict) => {
      verdicts[i] = verdict;
    };
    requestCheck(world, {}, record(0));
    requestCheck(world, {}, record(1));
    requestCheck(world, { wait: 0 }, record(2));
    expect(verdicts[0]).toMatchObject({ kind: 'forward' });
    expect(verdicts[1]).toBeUndefined();
    expect(verdicts[2]).toMatchObject({ kind: 'refuse' });
    world.runUntil(501);
    expect(verdicts[1]).toMatchObject({ kind: 'forward' });
  });

  test('leaves nothing in flight, and takes no token if its client has left', () => {
    const world = new World({ upstream: limitedTo(2) });
    requestCheck(world, {}, () => undefined);
    expect(world.limit.meter.inFlight).toBe(0);
    requestCheck(world, {}, () => undefined).onClientGone();
    let settled: ExchangeVerdict | undefined;
    requestCheck(world, {}, (verdict) => (settled = verdict));
    world.runUntil(501);
    expect(settled).toMatchObject({ kind: 'forward' });
  });

  test('is admitted in observe mode, with the decision that would have been made', () => {
    const world = new World({ upstream: limitedTo(2), mode: 'observe' });
    const drives = [1, 2, 3].map(() =>
      requestCheck(world, { wait: 0 }, (verdict) => expect(verdict.kind).toBe('forward')),
    );
    expect(drives.map(({ wouldHave }) => wouldHave?.decision)).toEqual(['passed', 'refused', 'refused']);
  });
});
