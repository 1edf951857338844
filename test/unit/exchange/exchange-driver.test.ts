import { describe, expect, test } from 'vitest';
import type { ExchangeEffects } from '../../../src/core/exchange/effects.ts';
import { ExchangeDriver } from '../../../src/core/exchange/exchange-driver.ts';
import { exchange } from '../../../src/core/exchange/exchange.ts';
import { Gate } from '../../../src/core/admission/gate.ts';
import { Ticket } from '../../../src/core/admission/ticket.ts';
import { MemoryStore } from '../../../src/store/memory-store.ts';
import type { Call, Respond, Send, CallRecord } from '../../support/core/call-record.ts';
import {
  failure,
  limitedTo,
  routePolicy,
  requestFacts,
  response,
  retryPolicy,
  SHARED,
  upstreamSettings,
} from '../../support/core/policy-builders.ts';
import { World } from '../../support/core/world.ts';

/** One outcome per send, in order, each after 10 ms; the last repeats. */
function script(...outcomes: ReturnType<typeof response>[]): Respond {
  return ({ client, attempt }: Send) => ({
    outcome: client === OTHER ? response(200) : outcomes[Math.min(attempt, outcomes.length) - 1]!,
    after: 10,
  });
}

/** A client that only needs tokens, and is never restricted. */
const OTHER = 'other';

function worldOf(respond: Respond, settings: Parameters<typeof upstreamSettings>[0] = {}): World {
  return new World({ respond, upstream: settings, random: () => 0.5 });
}

function budgetLeft(world: World): number | undefined {
  return world.gate.view(world.now).budgets.get('up');
}

const KEYED = { method: 'POST', keyed: true } as const;

describe('the steps of an interpreter', () => {
  test('are body, send and finish', () => {
    const world = worldOf(script(response(200)));
    const record = world.call();
    world.runUntil(100);
    expect(record.effects).toEqual(['body', 'send', 'forward']);
    expect(record.sends).toEqual([{ client: 'client', at: 0, attempt: 1, timeout: 5000 }]);
    expect(record.endedAt).toBe(10);
  });

  test('discard a response that is not forwarded before the sleep', () => {
    const world = worldOf(script(response(503), response(200)));
    const record = world.call();
    world.runUntil(1000);
    expect(record.effects).toEqual(['body', 'send', 'discard', 'sleep 100', 'send', 'forward']);
    expect(record.verdict).toMatchObject({ attempts: 2, retryOutcome: 'success' });
  });

  test('discard nothing after a failure', () => {
    const world = worldOf(script(failure('reset', true), failure('timeout', true), failure('connect', false)));
    const record = world.call();
    world.runUntil(1000);
    expect(record.effects.filter((step) => step === 'discard')).toEqual([]);
    expect(record.effects.at(-1)).toBe('fail');
  });

  test('discard a response in hand that cannot be forwarded unchanged', () => {
    const world = worldOf(script(failure('reset', true), response(503)));
    const record = world.call({ facts: KEYED, policy: { retry: retryPolicy({ attempts: 2 }) } });
    world.runUntil(1000);
    expect(record.effects).toEqual(['body', 'send', 'sleep 100', 'send', 'discard', 'unknown']);
  });

  test('end an attempt without a response at its timeout', () => {
    const world = worldOf(() => 'silence');
    const record = world.call({ policy: { perTryTimeout: 300, retry: retryPolicy({ attempts: 1 }) } });
    world.runUntil(1000);
    expect(record.verdict).toMatchObject({ kind: 'fail', reason: 'timeout' });
    expect(record.endedAt).toBe(300);
  });
});

describe('a departing client', () => {
  function goneAt(at: number, respond: Respond, call: Call = {}, settings = {}): { record: CallRecord; world: World } {
    const world = worldOf(respond, settings);
    if ('rate' in settings) world.call({ client: OTHER });
    const record = world.call(call);
    world.at(at, () => record.driver.onClientGone());
    world.runUntil(60_000);
    return { record, world };
  }

  function expectNothingLeft(world: World): void {
    expect(world.limit.meter.inFlight).toBe(0);
    expect(world.limit.queue.size).toBe(0);
    expect(budgetLeft(world)).toBe(1);
  }

  test('during the upload leaves no state', () => {
    const { record, world } = goneAt(50, script(response(200)), { upload: 100 });
    expect(record.effects).toEqual(['body', 'gone']);
    expect(record.endedAt).toBe(50);
    expectNothingLeft(world);
  });

  test('while queued releases its place', () => {
    const { record, world } = goneAt(50, script(response(200)), {}, limitedTo(1));
    expect(record.effects).toEqual(['body', 'gone']);
    expect(world.ofType('dequeued')).toEqual([{ type: 'dequeued', upstream: 'up', waited: 50, admitted: false }]);
    expectNothingLeft(world);
  });

  test('during an attempt cancels that attempt', () => {
    const { record, world } = goneAt(5, script(response(200)));
    expect(record.effects).toEqual(['body', 'send', 'cancelSend', 'gone']);
    expect(world.ofType('attempt')).toEqual([
      { type: 'attempt', upstream: 'up', attempt: 1, code: 'aborted', took: 5 },
    ]);
    expectNothingLeft(world);
  });

  test('during a sleep prevents further sends, and has the budget refunded', () => {
    const { record, world } = goneAt(50, script(response(503)));
    expect(record.effects).toEqual(['body', 'send', 'discard', 'sleep 100', 'cancelSleep', 'gone']);
    expect(world.ofType('retry-end')).toEqual([{ type: 'retry-end', upstream: 'up', outcome: 'client_gone' }]);
    expectNothingLeft(world);
  });

  test('while a retry is queued prevents further sends, and has the budget refunded', () => {
    const { record, world } = goneAt(900, script(response(503), response(200)), {}, limitedTo(2));
    expect(record.sends.map((send) => send.at)).toEqual([500]); // it slept until 610, and would have been sent at 1000
    expect(record.effects.slice(-2)).toEqual(['sleep 100', 'gone']);
    expect(record.verdict).toMatchObject({ retryOutcome: 'client_gone' });
    expectNothingLeft(world);
  });

  test('after the response has no effect', () => {
    const { record, world } = goneAt(500, script(response(200)));
    expect(record.effects).toEqual(['body', 'send', 'forward']);
    expectNothingLeft(world);
  });

  test('has the later responses ignored', () => {
    const world = worldOf(() => 'silence');
    const record = world.call({ upload: 10 });
    record.driver.onClientGone();
    record.driver.onBodyRead(true);
    record.driver.onOutcome(response(200));
    record.driver.onWake();
    record.driver.onAdmission({ kind: 'admitted' }, 0);
    record.driver.onClientGone();
    expect(record.effects).toEqual(['body', 'gone']);
    expect(record.driver.isDone).toBe(true);
  });
});

describe('a sleep', () => {
  /** An interpreter whose timers fire when the test fires them. */
  function startWithManualTimers() {
    const actions: string[] = [];
    const clock = { time: 0, now: () => clock.time };
    const listen = () => undefined;
    const store = new MemoryStore({ upstreams: [upstreamSettings()], maxTracked: 10, random: () => 0.5, listen });
    const effects: ExchangeEffects = {
      readBody: () => drive.onBodyRead(true),
      claim: () => drive.onClaimed(undefined),
      stopClaim: () => undefined,
      join: () => undefined,
      leave: () => undefined,
      lookUpKey: () => drive.onKeyKnown(undefined),
      send: ({ attempt }) => actions.push(`send ${attempt}`),
      cancelSend: () => actions.push('cancelSend') > 0,
      discardResponse: () => undefined,
      sleep: (ms) => actions.push(`sleep ${ms}`),
      cancelSleep: () => actions.push('cancelSleep'),
      rearmGateTimer: () => undefined,
      finish: (verdict) => actions.push(verdict.kind),
    };
    const drive = new ExchangeDriver({
      generator: exchange(requestFacts(), routePolicy(), () => 0.5, 0),
      gate: new Gate(store, listen),
      ticket: new Ticket('up', 'client', 1, [SHARED], () => undefined),
      effects,
      clock,
      listen,
    });
    drive.start();
    clock.time = 20;
    drive.onOutcome(response(503));
    return { drive, actions, clock };
  }

  test('continues to its end if a timer fires too early', () => {
    const { drive, actions, clock } = startWithManualTimers();
    clock.time = 119.25;
    drive.onWake();
    expect(actions).toEqual(['send 1', 'sleep 100', 'sleep 0.75']);
    clock.time = 120;
    drive.onWake();
    expect(actions.at(-1)).toBe('send 2');
    expect(drive.slept).toBe(100);
  });

  test('counts its actual duration if a timer fires late', () => {
    const { drive, clock } = startWithManualTimers();
    clock.time = 150;
    drive.onWake();
    expect(drive.slept).toBe(130);
  });
});

describe('on shutdown', () => {
  test('ends a sleep that would outlast it', () => {
    const world = worldOf(script(response(503)));
    const record = world.call();
    world.at(50, () => record.driver.drain(100)); // it sleeps until 110
    world.runUntil(1000);
    expect(record.effects.slice(-2)).toEqual(['cancelSleep', 'refuse']);
    expect(record.verdict).toMatchObject({ why: 'draining', attempts: 1 });
    expect(record.endedAt).toBe(50);
    expect(budgetLeft(world)).toBe(1);
  });

  test('continues a sleep that ends in time', () => {
    const world = worldOf(script(response(503), response(200)));
    const record = world.call();
    world.at(50, () => record.driver.drain(110));
    world.runUntil(1000);
    expect(record.verdict).toMatchObject({ kind: 'forward', attempts: 2 });
  });

  test('begins no sleep that would outlast it, and forwards the response in hand', () => {
    const world = worldOf(script(response(503)));
    const record = world.call();
    world.at(5, () => record.driver.drain(109));
    world.runUntil(1000);
    expect(record.effects).toEqual(['body', 'send', 'forward']);
    expect(record.verdict).toMatchObject({ kind: 'forward', attempts: 1, retryOutcome: 'deadline' });
    expect(world.ofType('retry')).toEqual([]);
  });

  test('reports a write that may have taken effect as unknown', () => {
    const world = worldOf(script(failure('reset', true)));
    const record = world.call({ facts: KEYED });
    world.at(50, () => record.driver.drain(60));
    world.runUntil(1000);
    expect(record.verdict).toMatchObject({ kind: 'unknown', reason: 'draining' });
  });

  test('completes a queued request and one that is in flight', () => {
    const world = worldOf(script(response(200)), limitedTo(2));
    const out = world.call();
    const queued = world.call();
    world.at(5, () => {
      out.driver.drain(2000);
      queued.driver.drain(2000);
    });
    world.runUntil(5000);
    expect([out.verdict?.kind, queued.verdict?.kind]).toEqual(['forward', 'forward']);
  });
});

describe('the driver counts', () => {
  test('the time in the queue, and the time asleep', () => {
    const world = worldOf(script(response(503), response(200)), limitedTo(2));
    world.call({ client: OTHER });
    const record = world.call();
    world.runUntil(5000);
    // Queued for 500 ms, then for the next token: one in 500 ms, of which it slept 100.
    expect(record.sends.map((send) => send.at)).toEqual([500, 1000]);
    expect(record.driver.slept).toBe(100);
    expect(record.driver.queued).toBe(500 + 390);
  });

  test('a place at the upstream until the response has ended', () => {
    const world = worldOf(script(response(200)));
    world.call({ download: 500 });
    world.runUntil(9);
    expect(world.limit.meter.inFlight).toBe(1);
    world.runUntil(509);
    expect(world.limit.meter.inFlight).toBe(1);
    world.runUntil(510);
    expect(world.limit.meter.inFlight).toBe(0);
  });

  test('a budget token for each retry that was sent', () => {
    const world = worldOf(script(response(503), response(503), response(500)));
    world.call();
    world.runUntil(1000);
    expect(budgetLeft(world)).toBeCloseTo(1 - 3 / 10, 9);
  });

  test('its client as in use until the exchange ends', () => {
    const world = new World({ maxTracked: 1 });
    world.call({ client: 'a' });
    world.call({ client: 'b' });
    expect(world.ofType('client-evicted')).toEqual([]);
    world.runUntil(1000);
    world.call({ client: 'c' });
    expect(world.ofType('client-evicted')).toHaveLength(1);
  });

  test('no place during a sleep', () => {
    const world = worldOf(script(response(503), response(200)));
    world.call();
    world.runUntil(50);
    expect(world.limit.meter.inFlight).toBe(0);
  });

  test('the end of a response once, though it is signalled twice', () => {
    const world = worldOf(script(response(200)));
    const first = world.call();
    world.call({ download: 1000 });
    world.runUntil(100);
    first.driver.onResponseEnd();
    first.driver.onResponseEnd();
    expect(world.limit.meter.inFlight).toBe(1);
  });
});

describe('the driver reports', () => {
  test('attempts, retries and how the request for a retry ended', () => {
    const world = worldOf(
      script(response(503), failure('reset', true), response(429, { retryAfterMs: 2000 }), response(200)),
    );
    world.call();
    world.runUntil(10_000);
    const events = world.events.filter((event) => ['attempt', 'retry', 'retry-end'].includes(event.type));
    const upstream = 'up';
    expect(events).toEqual([
      { type: 'attempt', upstream, attempt: 1, code: 503, took: 10 },
      { type: 'retry', upstream, reason: 'status_5xx', delay: 100, source: 'backoff' },
      { type: 'attempt', upstream, attempt: 2, code: 'reset', took: 10 },
      { type: 'retry', upstream, reason: 'reset', delay: 100, source: 'backoff' },
      { type: 'attempt', upstream, attempt: 3, code: 429, took: 10 },
      { type: 'retry', upstream, reason: 'status_429', delay: 2100, source: 'hint' },
      { type: 'attempt', upstream, attempt: 4, code: 200, took: 10 },
      { type: 'retry-end', upstream, outcome: 'success' },
    ]);
  });
});
