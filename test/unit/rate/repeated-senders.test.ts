/** Senders that fail repeatedly leave the probes of a block to others: minutes of virtual time. */
import { describe, expect, test } from 'vitest';
import type { From } from '../../support/core/attributed-line.ts';
import { from, Line } from '../../support/core/attributed-line.ts';

describe.each<['failed' | 'rejected', (n: number) => From, From]>([
  ['failed', (n) => ({ address: `a${n % 2}`, path: `/x/${n}` }), { address: 'other', path: '/x/9' }],
  ['rejected', (n) => ({ address: `a${n % 2}`, client: `k${n}`, path: `/x/${n}` }), { address: 'other', path: '/x/9' }],
  ['failed', (n) => ({ client: `k${n % 2}`, path: `/x/${n}` }), { client: 'other', path: '/x/9' }],
])('two senders whose requests are %s with a long Retry-After', (answer, of, other) => {
  test('block a third sender for no longer than an interval, although they send more often', () => {
    const line = new Line();
    let served = 0;
    let longest = 0;
    let lastServed = line.now;
    for (let i = 0; line.now < 200_000; i += 1) {
      line.ask(answer, from(of(i)), 300_000);
      if (i % 5 === 0 && line.ask('accepted', from(other))) {
        served += 1;
        longest = Math.max(longest, line.now - lastServed);
        lastServed = line.now;
      }
      line.now += 100;
    }
    expect(served).toBeGreaterThan(200);
    expect(longest).toBeLessThan(6000);
  });

  test('send one probe in maxProbeDelay if no other sends', () => {
    const line = new Line();
    for (let i = 0; line.part === undefined; i += 1) line.ask(answer, from(of(i)), 300_000);
    let probes = 0;
    const begun = line.now;
    for (let i = 0; line.now < begun + 290_000; i += 1) {
      if (line.ask(answer, from(of(i)), 300_000)) probes += 1;
      line.now += 100;
    }
    expect(probes).toBeLessThanOrEqual(11);
  });
});
