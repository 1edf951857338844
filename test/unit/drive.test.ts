import { describe, expect, test } from 'vitest';
import type { Effects } from '../../src/core/exchange/effects.ts';
import { Drive } from '../../src/core/exchange/exchange-driver.ts';
import { exchange } from '../../src/core/exchange/exchange.ts';
import { Gate } from '../../src/core/admission/gate.ts';
import { Ticket } from '../../src/core/admission/ticket.ts';
import { MemoryStore } from '../../src/store/memory-store.ts';
import type { Call, Respond, Send, Story } from '../support/policy.ts';
import {
  failure,
  limitedTo,
  planOf,
  requestFacts,
  response,
  retryPolicy,
  SHARED,
  upstreamSettings,
  World,
} from '../support/policy.ts';

/** One answer a send, in order, each after 10 ms; the last goes on. */
function script(...outcomes: ReturnType<typeof response>[]): Respond {
  return ({ client, attempt }: Send) => ({
    outcome: client === OTHER ? response(200) : outcomes[Math.min(attempt, outcomes.length) - 1]!,
    after: 10,
  });
}

/** Who only takes a token, and has no trouble. */
const OTHER = 'other';

function worldOf(respond: Respond, settings: Parameters<typeof upstreamSettings>[0] = {}): World {
  return new World({ respond, upstream: settings, random: () => 0.5 });
}

function budgetLeft(world: World): number | undefined {
  return world.gate.view(world.now).budgets.get('up');
}

const KEYED = { method: 'POST', keyed: true } as const;

describe('what is asked of an interpreter', () => {
  test('body, send, finish', () => {
    const world = worldOf(script(response(200)));
    const story = world.call();
    world.runUntil(100);
    expect(story.asked).toEqual(['body', 'send', 'forward']);
    expect(story.sends).toEqual([{ client: 'client', at: 0, attempt: 1, timeout: 5000 }]);
    expect(story.endedAt).toBe(10);
  });

  test('a response that is not forwarded is discarded before the sleep', () => {
    const world = worldOf(script(response(503), response(200)));
    const story = world.call();
    world.runUntil(1000);
    expect(story.asked).toEqual(['body', 'send', 'discard', 'sleep 100', 'send', 'forward']);
    expect(story.verdict).toMatchObject({ attempts: 2, retryEnd: 'success' });
  });

  test('a failure leaves nothing to discard', () => {
    const world = worldOf(script(failure('reset', true), failure('timeout', true), failure('connect', false)));
    const story = world.call();
    world.runUntil(1000);
    expect(story.asked.filter((step) => step === 'discard')).toEqual([]);
    expect(story.asked.at(-1)).toBe('fail');
  });

  test('a response in hand that cannot be forwarded as it is, is discarded too', () => {
    const world = worldOf(script(failure('reset', true), response(503)));
    const story = world.call({ facts: KEYED, plan: { retry: retryPolicy({ attempts: 2 }) } });
    world.runUntil(1000);
    expect(story.asked).toEqual(['body', 'send', 'sleep 100', 'send', 'discard', 'unknown']);
  });

  test('silence ends with the time of an attempt', () => {
    const world = worldOf(() => 'silence');
    const story = world.call({ plan: { perTryTimeout: 300, retry: retryPolicy({ attempts: 1 }) } });
    world.runUntil(1000);
    expect(story.verdict).toMatchObject({ kind: 'fail', reason: 'timeout' });
    expect(story.endedAt).toBe(300);
  });
});

describe('the client goes', () => {
  function goneAt(at: number, respond: Respond, call: Call = {}, settings = {}): { story: Story; world: World } {
    const world = worldOf(respond, settings);
    if ('rate' in settings) world.call({ client: OTHER });
    const story = world.call(call);
    world.at(at, () => story.drive.gone());
    world.runUntil(60_000);
    return { story, world };
  }

  function expectNothingLeft(world: World): void {
    expect(world.limit.meter.inFlight).toBe(0);
    expect(world.limit.queue.size).toBe(0);
    expect(budgetLeft(world)).toBe(1);
  }

  test('while it uploads', () => {
    const { story, world } = goneAt(50, script(response(200)), { upload: 100 });
    expect(story.asked).toEqual(['body', 'gone']);
    expect(story.endedAt).toBe(50);
    expectNothingLeft(world);
  });

  test('while it is queued: its place is given up', () => {
    const { story, world } = goneAt(50, script(response(200)), {}, limitedTo(1));
    expect(story.asked).toEqual(['body', 'gone']);
    expect(world.ofType('dequeued')).toEqual([{ type: 'dequeued', upstream: 'up', waited: 50, admitted: false }]);
    expectNothingLeft(world);
  });

  test('while an attempt is out: it is cancelled', () => {
    const { story, world } = goneAt(5, script(response(200)));
    expect(story.asked).toEqual(['body', 'send', 'cancelSend', 'gone']);
    expect(world.ofType('attempt')).toEqual([
      { type: 'attempt', upstream: 'up', attempt: 1, code: 'aborted', took: 5 },
    ]);
    expectNothingLeft(world);
  });

  test('while it sleeps: no more is sent, and the budget has its token back', () => {
    const { story, world } = goneAt(50, script(response(503)));
    expect(story.asked).toEqual(['body', 'send', 'discard', 'sleep 100', 'cancelSleep', 'gone']);
    expect(world.ofType('retry-end')).toEqual([{ type: 'retry-end', upstream: 'up', outcome: 'client_gone' }]);
    expectNothingLeft(world);
  });

  test('while a retry is queued: the same', () => {
    const { story, world } = goneAt(900, script(response(503), response(200)), {}, limitedTo(2));
    expect(story.sends.map((send) => send.at)).toEqual([500]); // it slept until 610, and would have left at 1000
    expect(story.asked.slice(-2)).toEqual(['sleep 100', 'gone']);
    expect(story.verdict).toMatchObject({ retryEnd: 'client_gone' });
    expectNothingLeft(world);
  });

  test('once all is said: nothing happens any more', () => {
    const { story, world } = goneAt(500, script(response(200)));
    expect(story.asked).toEqual(['body', 'send', 'forward']);
    expectNothingLeft(world);
  });

  test('answers that come late are not heard', () => {
    const world = worldOf(() => 'silence');
    const story = world.call({ upload: 10 });
    story.drive.gone();
    story.drive.bodyRead(true);
    story.drive.settled(response(200));
    story.drive.woke();
    story.drive.settle({ kind: 'admitted' }, 0);
    story.drive.gone();
    expect(story.asked).toEqual(['body', 'gone']);
    expect(story.drive.isDone).toBe(true);
  });
});

describe('a sleep', () => {
  /** An interpreter whose timers fire when the test says. */
  function asleep() {
    const told: string[] = [];
    const clock = { time: 0, now: () => clock.time };
    const listen = () => undefined;
    const store = new MemoryStore({ upstreams: [upstreamSettings()], maxTracked: 10, random: () => 0.5, listen });
    const effects: Effects = {
      readBody: () => drive.bodyRead(true),
      claim: () => drive.claimed(undefined),
      cancelClaim: () => false,
      lookUp: () => undefined,
      send: ({ attempt }) => told.push(`send ${attempt}`),
      cancelSend: () => told.push('cancelSend') > 0,
      discard: () => undefined,
      sleep: (ms) => told.push(`sleep ${ms}`),
      cancelSleep: () => told.push('cancelSleep'),
      rearm: () => undefined,
      finish: (verdict) => told.push(verdict.kind),
    };
    const drive = new Drive({
      script: exchange(requestFacts(), planOf(), () => 0.5, 0),
      gate: new Gate(store, listen),
      ticket: new Ticket('up', 'client', 1, [SHARED], () => undefined),
      effects,
      clock,
      listen,
    });
    drive.start();
    clock.time = 20;
    drive.settled(response(503));
    return { drive, told, clock };
  }

  test('that a timer ends too early is slept to its end', () => {
    const { drive, told, clock } = asleep();
    clock.time = 119.25;
    drive.woke();
    expect(told).toEqual(['send 1', 'sleep 100', 'sleep 0.75']);
    clock.time = 120;
    drive.woke();
    expect(told.at(-1)).toBe('send 2');
    expect(drive.slept).toBe(100);
  });

  test('that a timer ends late is counted as it was', () => {
    const { drive, clock } = asleep();
    clock.time = 150;
    drive.woke();
    expect(drive.slept).toBe(130);
  });
});

describe('the proxy goes away', () => {
  test('a sleep that would outlast it ends now', () => {
    const world = worldOf(script(response(503)));
    const story = world.call();
    world.at(50, () => story.drive.drain(100)); // it sleeps until 110
    world.runUntil(1000);
    expect(story.asked.slice(-2)).toEqual(['cancelSleep', 'refuse']);
    expect(story.verdict).toMatchObject({ why: 'draining', attempts: 1 });
    expect(story.endedAt).toBe(50);
    expect(budgetLeft(world)).toBe(1);
  });

  test('a sleep that ends in time goes on', () => {
    const world = worldOf(script(response(503), response(200)));
    const story = world.call();
    world.at(50, () => story.drive.drain(110));
    world.runUntil(1000);
    expect(story.verdict).toMatchObject({ kind: 'forward', attempts: 2 });
  });

  test('no sleep that would outlast it is begun: what is in hand is forwarded', () => {
    const world = worldOf(script(response(503)));
    const story = world.call();
    world.at(5, () => story.drive.drain(109));
    world.runUntil(1000);
    expect(story.asked).toEqual(['body', 'send', 'forward']);
    expect(story.verdict).toMatchObject({ kind: 'forward', attempts: 1, retryEnd: 'deadline' });
    expect(world.ofType('retry')).toEqual([]);
  });

  test('a write that may have happened is told as unknown', () => {
    const world = worldOf(script(failure('reset', true)));
    const story = world.call({ facts: KEYED });
    world.at(50, () => story.drive.drain(60));
    world.runUntil(1000);
    expect(story.verdict).toMatchObject({ kind: 'unknown', reason: 'draining' });
  });

  test('what is queued or out is finished', () => {
    const world = worldOf(script(response(200)), limitedTo(2));
    const out = world.call();
    const queued = world.call();
    world.at(5, () => {
      out.drive.drain(2000);
      queued.drive.drain(2000);
    });
    world.runUntil(5000);
    expect([out.verdict?.kind, queued.verdict?.kind]).toEqual(['forward', 'forward']);
  });
});

describe('what it counts', () => {
  test('time in the queue, and asleep', () => {
    const world = worldOf(script(response(503), response(200)), limitedTo(2));
    world.call({ client: OTHER });
    const story = world.call();
    world.runUntil(5000);
    // Queued for 500 ms, then for the token after: one in 500 ms, and it slept for 100 of them.
    expect(story.sends.map((send) => send.at)).toEqual([500, 1000]);
    expect(story.drive.slept).toBe(100);
    expect(story.drive.queued).toBe(500 + 390);
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

  test('a token of the budget for each retry that was sent', () => {
    const world = worldOf(script(response(503), response(503), response(500)));
    world.call();
    world.runUntil(1000);
    expect(budgetLeft(world)).toBeCloseTo(1 - 3 / 10, 9);
  });

  test('its client as in use until it is over', () => {
    const world = new World({ maxTracked: 1 });
    world.call({ client: 'a' });
    world.call({ client: 'b' });
    expect(world.ofType('client-evicted')).toEqual([]);
    world.runUntil(1000);
    world.call({ client: 'c' });
    expect(world.ofType('client-evicted')).toHaveLength(1);
  });

  test('no place while it sleeps', () => {
    const world = worldOf(script(response(503), response(200)));
    world.call();
    world.runUntil(50);
    expect(world.limit.meter.inFlight).toBe(0);
  });

  test('the end of a response may be told twice', () => {
    const world = worldOf(script(response(200)));
    const first = world.call();
    world.call({ download: 1000 });
    world.runUntil(100);
    first.drive.ended();
    first.drive.ended();
    expect(world.limit.meter.inFlight).toBe(1);
  });
});

describe('what it tells', () => {
  test('attempts, retries and how the wish to retry ended', () => {
    const world = worldOf(
      script(response(503), failure('reset', true), response(429, { retryAfter: 2000 }), response(200)),
    );
    world.call();
    world.runUntil(10_000);
    const told = world.events.filter((event) => ['attempt', 'retry', 'retry-end'].includes(event.type));
    const upstream = 'up';
    expect(told).toEqual([
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
