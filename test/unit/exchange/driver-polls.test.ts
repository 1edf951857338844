import { expect, test } from 'vitest';
import type { PollWaitAccounting } from '../../../src/core/exchange/poll-session.ts';
import type { PollOutcome } from '../../../src/core/events/event-labels.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import type { AttemptOutcome } from '../../../src/core/exchange/attempt-outcome.ts';
import type { Call } from '../../support/core/call-record.ts';
import { fixedDelay, pollPolicy, response, SEND_ONCE } from '../../support/core/policy-builders.ts';
import { World } from '../../support/core/world.ts';

class Noted implements PollWaitAccounting {
  readonly outcomes: PollOutcome[] = [];
  readonly #hasRoom: boolean;
  entered = 0;
  left = 0;

  constructor(hasRoom = true) {
    this.#hasRoom = hasRoom;
  }

  tryEnter(): boolean {
    this.entered += 1;
    return this.#hasRoom;
  }

  onPollOutcome(outcome: PollOutcome): void {
    this.outcomes.push(outcome);
  }

  leave(): void {
    this.left += 1;
  }
}

/** Returns 202 until this time. */
const readyAt = (time: Millis) => (at: Millis) => response(at < time ? 202 : 200);

function worldOf(answer: (at: Millis) => AttemptOutcome): World {
  return new World({ respond: ({ at }) => ({ outcome: answer(at), after: 10 }) });
}

const waits = (pollWait: PollWaitAccounting): Call => ({
  pollWait,
  facts: { preferredWait: 60_000 },
  policy: { poll: pollPolicy({ backOff: fixedDelay(500) }) },
});

test('releases the response in hand once it waits for the next poll, and not before', () => {
  const noted = new Noted();
  const world = worldOf(readyAt(600));
  const record = world.call(waits(noted));
  world.runUntil(5000);
  expect(record.effects).toEqual([
    'body',
    'send',
    'discard',
    'sleep 500',
    'send',
    'discard',
    'sleep 500',
    'send',
    'forward',
  ]);
  expect(noted).toMatchObject({ outcomes: ['not_ready', 'ready'], left: 1 });
  expect(world.ofType('decision')).toHaveLength(3);
  expect(world.ofType('retry')).toEqual([]);
  expect(world.ofType('attempt').map(({ attempt, code }) => [attempt, code])).toEqual([
    [1, 202],
    [1, 202],
    [1, 200],
  ]);
});

test('counts each poll as an arrival of its client', () => {
  const world = worldOf(readyAt(1e6));
  const polled = world.call(waits(new Noted()));
  const once = world.call({ client: 'other', facts: {} });
  const slot = once.driver.ticket.clientSlot ?? -1;
  world.runUntil(4900);
  const demand = (of: number | undefined) => world.store.clients.demand(of ?? -1, world.now);
  expect(demand(slot)).toBeLessThan(0.1);
  // About two a second, as it is smoothed.
  expect(demand(polled.driver.ticket.clientSlot)).toBeGreaterThan(1);
  expect(world.store.clients.view(world.now).tracked).toBe(2);
});

test('sends a poll that was refused because of a hold when the hold ends', () => {
  const noted = new Noted();
  const world = worldOf((at) => (at === 700 ? response(429, { retryAfterMs: 3000 }) : readyAt(2000)(at)));
  const record = world.call(waits(noted));
  world.at(700, () => void world.call({ policy: { retry: SEND_ONCE } }));
  world.runUntil(30_000);
  expect(noted.outcomes).toEqual(['not_ready', 'refused', 'ready']);
  expect(record.verdict).toMatchObject({ kind: 'forward', attempts: 3, polls: 3 });
  expect(record.sends[2]?.at).toBeGreaterThanOrEqual(3700);
});

test('forwards the response in hand if no place is free or the client does not wait', () => {
  for (const call of [waits(new Noted(false)), { ...waits(new Noted()), pollWait: undefined }]) {
    const world = worldOf(readyAt(1e6));
    const { pollWait, ...rest } = call;
    const record = world.call(pollWait === undefined ? rest : { ...rest, pollWait });
    world.runUntil(1000);
    expect(record.effects).toEqual(['body', 'send', 'forward']);
    expect(record.verdict).toMatchObject({ attempts: 1, notReady: true });
  }
});

test('reports the departure of a client, but only while a poll is in progress', () => {
  for (const [at, outcomes] of [
    [505 + 10, ['client_gone']],
    [300, []],
  ] as const) {
    const noted = new Noted();
    const world = worldOf(readyAt(1e6));
    const record = world.call(waits(noted));
    world.at(at, () => record.driver.onClientGone());
    world.runUntil(1000);
    expect(noted).toMatchObject({ outcomes, left: 1 });
    expect(record.verdict).toMatchObject({ kind: 'gone' });
  }
});

test('ends each wait with one more poll on shutdown, even a wait that would end in time', () => {
  const noted = new Noted();
  const world = worldOf(readyAt(1e6));
  const record = world.call(waits(noted));
  world.at(200, () => record.driver.drain(100_000));
  world.runUntil(1000);
  expect(record.effects).toEqual(['body', 'send', 'discard', 'sleep 500', 'cancelSleep', 'send', 'forward']);
  expect(record.sends[1]?.at).toBe(200);
  expect(noted.outcomes).toEqual(['not_ready']);
  expect(world.gate.view(world.now).limits.every(({ inFlight }) => inFlight === 0)).toBe(true);
});
