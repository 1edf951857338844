import { expect, test } from 'vitest';
import type { PollWait } from '../../src/core/exchange/poll-session.ts';
import type { PollOutcome } from '../../src/core/events/proxy-events.ts';
import type { Millis, Outcome } from '../../src/core/exchange/attempt-outcome.ts';
import type { Call } from '../support/policy.ts';
import { fixedDelay, pollPolicy, response, SEND_ONCE, World } from '../support/policy.ts';

class Noted implements PollWait {
  readonly outcomes: PollOutcome[] = [];
  readonly #hasRoom: boolean;
  entered = 0;
  left = 0;

  constructor(hasRoom = true) {
    this.#hasRoom = hasRoom;
  }

  enter(): boolean {
    this.entered += 1;
    return this.#hasRoom;
  }

  polled(outcome: PollOutcome): void {
    this.outcomes.push(outcome);
  }

  leave(): void {
    this.left += 1;
  }
}

/** Not ready until then. */
const readyAt = (time: Millis) => (at: Millis) => response(at < time ? 202 : 200);

function worldOf(answer: (at: Millis) => Outcome): World {
  return new World({ respond: ({ at }) => ({ outcome: answer(at), after: 10 }) });
}

const waits = (pollWait: PollWait): Call => ({
  pollWait,
  facts: { wait: 60_000 },
  plan: { poll: pollPolicy({ backOff: fixedDelay(500) }) },
});

test('the response in hand is let go when the next poll is waited for, and not before', () => {
  const noted = new Noted();
  const world = worldOf(readyAt(600));
  const story = world.call(waits(noted));
  world.runUntil(5000);
  expect(story.asked).toEqual([
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

test('each poll is an arrival of its client, as far as shares are concerned', () => {
  const world = worldOf(readyAt(1e6));
  const polled = world.call(waits(new Noted()));
  const once = world.call({ client: 'other', facts: {} });
  const slot = once.drive.ticket.slot ?? -1;
  world.runUntil(4900);
  const demand = (of: number | undefined) => world.store.clients.demand(of ?? -1, world.now);
  expect(demand(slot)).toBeLessThan(0.1);
  // About two a second, as it is smoothed.
  expect(demand(polled.drive.ticket.slot)).toBeGreaterThan(1);
  expect(world.store.clients.view(world.now).tracked).toBe(2);
});

test('a poll that is turned away while its client is held comes when that is over', () => {
  const noted = new Noted();
  const world = worldOf((at) => (at === 700 ? response(429, { retryAfter: 3000 }) : readyAt(2000)(at)));
  const story = world.call(waits(noted));
  world.at(700, () => void world.call({ plan: { retry: SEND_ONCE } }));
  world.runUntil(30_000);
  expect(noted.outcomes).toEqual(['not_ready', 'refused', 'ready']);
  expect(story.verdict).toMatchObject({ kind: 'forward', attempts: 3, polls: 3 });
  expect(story.sends[2]?.at).toBeGreaterThanOrEqual(3700);
});

test('where there is no room, or nobody who waits, what is in hand goes through', () => {
  for (const call of [waits(new Noted(false)), { ...waits(new Noted()), pollWait: undefined }]) {
    const world = worldOf(readyAt(1e6));
    const { pollWait, ...rest } = call;
    const story = world.call(pollWait === undefined ? rest : { ...rest, pollWait });
    world.runUntil(1000);
    expect(story.asked).toEqual(['body', 'send', 'forward']);
    expect(story.verdict).toMatchObject({ attempts: 1, notReady: true });
  }
});

test('one whose client leaves is told as that, and only while it is under way', () => {
  for (const [at, outcomes] of [
    [505 + 10, ['client_gone']],
    [300, []],
  ] as const) {
    const noted = new Noted();
    const world = worldOf(readyAt(1e6));
    const story = world.call(waits(noted));
    world.at(at, () => story.drive.gone());
    world.runUntil(1000);
    expect(noted).toMatchObject({ outcomes, left: 1 });
    expect(story.verdict).toMatchObject({ kind: 'gone' });
  }
});

test('when we go away each wait ends with one poll more, even one that would end in time', () => {
  const noted = new Noted();
  const world = worldOf(readyAt(1e6));
  const story = world.call(waits(noted));
  world.at(200, () => story.drive.drain(100_000));
  world.runUntil(1000);
  expect(story.asked).toEqual(['body', 'send', 'discard', 'sleep 500', 'cancelSleep', 'send', 'forward']);
  expect(story.sends[1]?.at).toBe(200);
  expect(noted.outcomes).toEqual(['not_ready']);
  expect(world.gate.view(world.now).limits.every(({ inFlight }) => inFlight === 0)).toBe(true);
});
