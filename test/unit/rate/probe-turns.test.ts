/** The order in which senders that have failed send the probes of a block. */
import { describe, expect, test } from 'vitest';
import { RecentSenders } from '../../../src/core/rate/breaker/recent-senders.ts';
import type { RequestAttributes } from '../../../src/core/rate/breaker/request-attributes.ts';
import { ANY_REQUEST } from '../../../src/core/rate/breaker/request-attributes.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import { from } from '../../support/core/attributed-line.ts';

/** A sender, and a time from the begin of the block. */
type Probe = readonly [sender: RequestAttributes, at: Millis];

describe('the turn of a sender at the probes', () => {
  const BEGUN = 100_000;
  const block = { scope: ANY_REQUEST, since: BEGUN };
  const [a, b, c, d] = [
    from({ address: 'a' }),
    from({ address: 'b' }),
    from({ address: 'c' }),
    from({ address: 'd', client: 'd1' }),
  ];

  test('is the later, the more senders have sent a probe before its last one', () => {
    const senders = new RecentSenders();
    for (const [i, each] of [a, b, c, a].entries()) senders.addProbe(each, BEGUN + 10 + i);
    expect([b, c, a].map((each) => senders.probeTurn(each, block))).toEqual([0, 0.5, 1]);
    expect(senders.probeTurn(d, block)).toBe(0);
  });

  test('comes after that of those that have failed without a probe, which count as one', () => {
    const senders = new RecentSenders();
    for (const each of [c, d]) senders.add(each, BEGUN - 10);
    for (const [i, each] of [a, b].entries()) senders.addProbe(each, BEGUN + 10 + i);
    expect([c, d, a, b].map((each) => senders.probeTurn(each, block))).toEqual([0, 0, 0.5, 1]);
  });

  test('ignores probes of an earlier block, and senders that failed more than 10 s before this one', () => {
    const senders = new RecentSenders();
    senders.addProbe(b, BEGUN - 10);
    senders.add(c, BEGUN - 10_001);
    senders.addProbe(a, BEGUN + 10);
    expect([a, b, c].map((each) => senders.probeTurn(each, block))).toEqual([0, 0, 0]);
  });

  test('is that of its client if one address is blocked alone, or no other address has failed', () => {
    const d2 = from({ address: 'd', client: 'd2' });
    const ofAddress = { scope: [d[0] ?? 0, 0, 0, 0, 0, 0, 0, 0], since: BEGUN };
    const senders = new RecentSenders();
    senders.add(d2, BEGUN - 10);
    senders.addProbe(d, BEGUN + 10);
    expect([d, d2].map((each) => senders.probeTurn(each, block))).toEqual([1, 0]);
    senders.add(a, BEGUN + 20);
    expect([d, d2].map((each) => senders.probeTurn(each, block))).toEqual([1, 1]);
    expect([d, d2].map((each) => senders.probeTurn(each, ofAddress))).toEqual([1, 0]);
  });

  test('is 0 for a sender that is alone', () => {
    const senders = new RecentSenders();
    for (let i = 1; i < 5; i += 1) senders.addProbe(a, BEGUN + i);
    expect(senders.probeTurn(a, block)).toBe(0);
  });

  test.each<[string, readonly Probe[], readonly Probe[], readonly number[]]>([
    [
      'counts probes from the begin of the block on',
      [],
      [
        [b, 0],
        [a, 10],
      ],
      [1, 0],
    ],
    [
      'is the first of two that were sent at the same time',
      [],
      [
        [a, 10],
        [b, 10],
      ],
      [0, 0],
    ],
    ['comes after a sender that failed ten seconds before the block', [[c, -10_000]], [[a, 10]], [1, 0]],
    ['is the last if its only probe is as old as the block', [[c, -10]], [[a, 0]], [1, 0]],
    [
      'does not count probes of unknown senders',
      [],
      [
        [ANY_REQUEST, 5],
        [a, 10],
      ],
      [0, 0],
    ],
  ])('%s', (_, failures, probes, turns) => {
    const senders = new RecentSenders();
    for (const [sender, at] of failures) senders.add(sender, BEGUN + at);
    for (const [sender, at] of probes) senders.addProbe(sender, BEGUN + at);
    expect([a, b].map((each) => senders.probeTurn(each, block))).toEqual(turns);
  });
});
