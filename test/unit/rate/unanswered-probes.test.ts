/** Probes without a response: how long a block waits for them, and which requests give way after them. */
import { describe, expect, test } from 'vitest';
import type { QueuedTicket } from '../../support/core/call-record.ts';
import { blockedBy, from } from '../../support/core/attributed-line.ts';
import { failure } from '../../support/core/policy-builders.ts';
import { activeBlock } from '../../support/core/rate-builders.ts';
import { World } from '../../support/core/world.ts';
import type { ActiveBlock } from '../../../src/core/rate/breaker/active-block.ts';
import { FailureDetector } from '../../../src/core/rate/breaker/failure-detector.ts';
import type { RequestAttributes } from '../../../src/core/rate/breaker/request-attributes.ts';
import {
  addProbe,
  dropLastProbe,
  endFailedProbe,
  firstProbeSentAt,
  hasSenderFailed,
  makeProbeDue,
  pathDeferral,
} from '../../../src/core/rate/breaker/unanswered-probes.ts';
import type { Millis } from '../../../src/core/scalars.ts';

const isOut = ({ admission }: QueuedTicket): boolean => admission?.kind === 'admitted';

/** Blocked by errors of the clients `failed 0` to `failed 7`. It is now 3000, and a probe is due for any sender. */
function blockedWorld(): World {
  const world = new World({ random: () => 0.5 });
  world.now = 2900;
  const requests = Array.from({ length: 8 }, (_, i) => world.arrive({ client: `failed ${i}` }));
  for (const request of requests) world.send(request);
  for (const request of requests) world.answer(request, failure('reset', true));
  for (const { ticket } of requests) world.gate.onExchangeEnd(ticket);
  expect(world.limit.meter.phase).toBe('blocked');
  world.now = 3000;
  return world;
}

describe('after a probe without a response', () => {
  test('its sender sends the next one 4 s later than others may', () => {
    const world = blockedWorld();
    world.send(world.arrive({ client: 'slow' })); // the next is due at 5000
    world.runUntil(8500);
    const again = world.arrive({ client: 'slow' });
    world.runUntil(8990);
    expect(isOut(again)).toBe(false);
    world.runUntil(9000);
    expect(isOut(again)).toBe(true);
  });

  test('one that had failed sends the next one 2 s later than others may', () => {
    const world = blockedWorld();
    world.send(world.arrive({ client: 'slow' }));
    world.runUntil(6500);
    const again = world.arrive({ client: 'failed 1' });
    world.runUntil(6990);
    expect(isOut(again)).toBe(false);
    world.runUntil(7000);
    expect(isOut(again)).toBe(true);
  });

  test('another sender that returns within 2 s sends the next one, although earlier ones wait', () => {
    const world = blockedWorld();
    world.send(world.arrive({ client: 'slow' }));
    world.runUntil(6500);
    const earlier = [world.arrive({ client: 'slow' }), world.arrive({ client: 'failed 1' })];
    world.runUntil(6900);
    const other = world.arrive({ client: 'other' });
    expect([...earlier, other].map(isOut)).toEqual([false, false, true]);
    world.serve(other);
    expect(world.limit.meter.phase).toBe('restoring');
  });

  test('of a sender that had failed, others need not avoid its path', () => {
    const world = blockedWorld();
    world.send(world.arrive({ client: 'failed 0', path: '/charges' }));
    world.runUntil(4900);
    const failed = world.arrive({ client: 'failed 1', path: '/refunds' });
    const other = world.arrive({ client: 'other', path: '/charges' });
    world.runUntil(5000);
    expect([failed, other].map(isOut)).toEqual([false, true]);
  });

  test('of a sender that had failed, those that have failed too send requests of other paths first', () => {
    const world = blockedWorld();
    world.send(world.arrive({ client: 'failed 0', path: '/charges' }));
    world.runUntil(6900);
    const same = world.arrive({ client: 'failed 1', path: '/charges' });
    const other = world.arrive({ client: 'failed 2', path: '/refunds' });
    world.runUntil(7000);
    expect([same, other].map(isOut)).toEqual([false, true]);
  });

  test('of a client of an address that is blocked alone, it and the clients that had failed give way to the others', () => {
    const line = blockedBy((i) => ({ client: `failed ${i}`, path: `/${i}` }));
    expect(line.part).toBe('address');
    line.now = 2000;
    line.rate.admit(2000, from({ client: 'slow', path: '/slow' }));
    const delayOf = (client: string): Millis => line.rate.delay(2000, from({ client, path: '/other' }));
    expect(['other', 'failed 1', 'slow'].map(delayOf)).toEqual([2000, 4000, 6000]);
  });

  test('of a client that is blocked alone, its next request comes as soon as that of others would', () => {
    const line = blockedBy((i) => ({ path: `/${i}` }));
    expect(line.part).toBe('client');
    line.now = 2000;
    line.rate.admit(2000, from({ path: '/slow' }));
    expect(line.rate.delay(2000, from({ path: '/other' }))).toBe(2000);
  });
});

/** Of an address, a client, and a path with these numbers. */
const of = (address: number, client = 0, path: readonly number[] = [0, 0, 0, 0, 0]): RequestAttributes => [
  ...[address, client, 0],
  ...path,
];

describe('the probes of a block that have no response', () => {
  /** A block that has sent these probes, and its detector. */
  function probed(
    probes: readonly (readonly [at: Millis, attributes: RequestAttributes | undefined])[],
    changes: Partial<ActiveBlock> = {},
  ): { readonly block: ActiveBlock; readonly detector: FailureDetector } {
    const detector = new FailureDetector();
    const block = activeBlock(changes);
    for (const [at, attributes] of probes) addProbe(block, detector, at, attributes);
    return { block, detector };
  }

  test('are stored with their paths, and their senders count as failed', () => {
    const [first, second] = [of(1, 0, [10, 11, 11, 11, 11]), of(2, 0, [10, 12, 12, 12, 12])];
    const { block, detector } = probed([
      [1000, first],
      [3000, second],
      [7000, undefined],
    ]);
    expect(block).toMatchObject({
      ...{ probeSentAt: 7000, earlierProbes: [1000, 3000], overdueProbes: 2, probeSource: [] },
      ...{ unansweredPaths: [10, 11, 12], failedSendersPaths: [], hasProbeSenderFailed: false },
    });
    const hasFailed = (address: number): boolean => detector.hasSenderFailed(of(address), block);
    expect([1, 2, 3].map(hasFailed)).toEqual([true, true, false]);
  });

  test('of senders that had failed are stored apart', () => {
    const again = of(1, 0, [10, 11, 11, 11, 11]);
    const { block } = probed([
      [1000, of(1)],
      [3000, again],
      [7000, of(2)],
    ]);
    expect([block.unansweredPaths, block.failedSendersPaths]).toEqual([[], [10, 11]]);
    expect(block.hasProbeSenderFailed).toBe(false);
  });

  test('are the last eight, with 40 numbers of paths, and lengthen the wait up to the longest one', () => {
    const probes = Array.from({ length: 20 }, (_, i) => {
      const path = [0, 1, 2, 3, 4].map((level) => 100 + 5 * i + level);
      return [1000 + i, of(1 + i, 0, path)] as const;
    });
    const { block } = probed(probes);
    expect(block.earlierProbes).toEqual(Array.from({ length: 8 }, (_, i) => 1011 + i));
    expect(block.unansweredPaths).toEqual(Array.from({ length: 40 }, (_, i) => 155 + i));
    expect(block.overdueProbes).toBe(4); // 32 s, of 30 s at most
    expect(probed(probes.slice(0, 9)).block.earlierProbes).toHaveLength(8);
    expect(probed(probes, { probeTimeout: 4000 }).block.overdueProbes).toBe(1);
  });

  test('are forgotten with the last one, unless others are still without a response', () => {
    const { block } = probed([
      [1000, of(1, 0, [10, 10, 10, 10, 10])],
      [3000, of(2)],
    ]);
    dropLastProbe(block);
    expect(block).toMatchObject({ probeSentAt: undefined, probeSource: [], unansweredPaths: [10] });
    block.failedSendersPaths = [11];
    block.earlierProbes = [];
    dropLastProbe(block);
    expect(block).toMatchObject({ unansweredPaths: [], failedSendersPaths: [] });
  });

  test('do not delay a probe that an operator asks for', () => {
    const { block } = probed(
      [
        [1000, of(1, 0, [10, 10, 10, 10, 10])],
        [3000, of(2)],
      ],
      { probeAt: 9000, repeatAt: 9500, heldClient: 5, heldClientUntil: 90_000 },
    );
    makeProbeDue(block, 4000);
    expect(block).toMatchObject({
      ...{ probeSentAt: undefined, probeAt: 4000, repeatAt: 4000, heldClientUntil: Number.NEGATIVE_INFINITY },
      ...{ unansweredPaths: [], failedSendersPaths: [] },
    });
  });

  test.each<[string, Millis, Millis, boolean, readonly Millis[], number]>([
    ['the last one fails at once', 9000, 10_999, true, [1000, 3000, 5000], 0],
    ['the last one fails after 2 s', 9000, 11_000, true, [1000, 3000, 5000], 3],
    ['an earlier one fails', 3000, 10_000, false, [1000, 5000], 3],
    ['the first one fails', 1000, 10_000, false, [3000, 5000], 3],
    ['a request fails that was sent since an earlier one', 3500, 10_000, false, [1000, 5000], 3],
    ['a request fails that was sent before all of them', 999, 10_000, false, [1000, 3000, 5000], 3],
  ])('are no longer waited for if %s', (_, sentAt, now, isLast, earlierProbes, overdueProbes) => {
    const block = activeBlock({ probeSentAt: 9000, earlierProbes: [1000, 3000, 5000], overdueProbes: 3 });
    expect(endFailedProbe(block, sentAt, now)).toBe(isLast);
    expect(block).toMatchObject({ earlierProbes, overdueProbes, probeSentAt: isLast ? undefined : 9000 });
  });

  test('end the block by a late acceptance, from the first one on', () => {
    const first = (changes: Partial<ActiveBlock>): Millis => firstProbeSentAt(activeBlock(changes));
    expect(first({ probeAt: 2000 })).toBe(2000);
    expect(first({ probeAt: 2000, probeSentAt: 1500 })).toBe(1500);
    expect(first({ probeAt: 2000, probeSentAt: 6000, earlierProbes: [1700, 1900] })).toBe(1700);
  });

  test.each<[string, RequestAttributes | undefined, Partial<ActiveBlock>, boolean, Millis]>([
    ['none of its path is theirs', of(1, 0, [1, 2, 3, 3, 3]), { unansweredPaths: [9] }, true, 0],
    ['half of its path is theirs', of(1, 0, [1, 2, 3, 4, 0]), { unansweredPaths: [1, 2] }, false, 1000],
    ['all of it is', of(1, 0, [1, 2, 2, 2, 2]), { unansweredPaths: [1, 2] }, false, 2000],
    ['several were without one', of(1, 0, [1, 2, 2, 2, 2]), { unansweredPaths: [1, 2], overdueProbes: 3 }, false, 4000],
    ['its path is unknown', of(1), { unansweredPaths: [1, 2] }, false, 0],
    ['nothing of it is known', undefined, { unansweredPaths: [1, 2] }, false, 0],
    ['they are of failed senders', of(1, 0, [1, 2, 2, 2, 2]), { failedSendersPaths: [1, 2] }, false, 0],
    ['its sender has failed too', of(1, 0, [1, 2, 2, 2, 2]), { failedSendersPaths: [1, 2] }, true, 2000],
  ])('delay a request if %s', (_, attributes, changes, hasFailed, delay) => {
    expect(pathDeferral(activeBlock(changes), attributes, hasFailed, false)).toBe(delay);
  });

  test.each<[string, RequestAttributes, RequestAttributes | undefined, boolean]>([
    ['another client of its address', of(0), of(1, 8), true],
    ['its client at another address', of(0), of(2, 7), false],
    ['another client, if that address is blocked', of(1), of(1, 8), false],
    ['its client, if that address is blocked', of(1), of(1, 7), true],
    ['its client, if that client is blocked', of(1, 7), of(1, 7), false],
    ['an unknown sender', of(0), of(0), false],
    ['an unknown request', of(0), undefined, false],
  ])('have as their sender: %s', (_, scope, attributes, isSender) => {
    const block = activeBlock({ scope: [...scope], probeSentAt: 1000, probeSource: of(1, 7) });
    expect(hasSenderFailed(block, new FailureDetector(), attributes)).toBe(isSender);
  });
});
