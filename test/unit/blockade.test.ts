import { describe, expect, test } from 'vitest';
import type { CutCause } from '../../src/policy/events.ts';
import { AdaptiveRate } from '../../src/policy/rate.ts';
import { ErrorAccount } from '../../src/policy/rate/block.ts';
import type { RateSettings } from '../../src/policy/rate/state.ts';
import type { Millis, Random } from '../../src/policy/types.ts';

/** An adaptive rate that is told of one request after another: each is sent, and answered at once. */
class Line {
  readonly rate: AdaptiveRate;
  now: Millis = 0;

  constructor(settings: Partial<RateSettings> = {}, random: Random = () => 0.5) {
    this.rate = new AdaptiveRate(
      { initialRate: undefined, maxRate: Number.POSITIVE_INFINITY, minRate: 0.1, cooldown: 1000, ...settings },
      random,
    );
  }

  at(now: Millis): this {
    this.now = now;
    return this;
  }

  /** Accepted, one every 10 ms, until `end`. */
  serve(end: Millis): this {
    for (; this.now < end; this.now += 10) this.one('accepted');
    return this;
  }

  one(answer: 'accepted' | 'rejected' | 'failed', retryAfter?: Millis): CutCause | undefined {
    const { now, rate } = this;
    rate.advance(now, true);
    rate.sent(now);
    if (answer === 'rejected') return rate.rejected({ sentAt: now, retryAfter, activeClients: 1 }, now);
    if (answer === 'failed') return rate.failed(now, now, retryAfter);
    rate.accepted(now, now);
    return undefined;
  }

  many(count: number, answer: 'accepted' | 'rejected' | 'failed', retryAfter?: Millis): (CutCause | undefined)[] {
    return Array.from({ length: count }, () => this.one(answer, retryAfter));
  }

  /** The next probe, answered at once. */
  probe(answer: 'accepted' | 'rejected' | 'failed', retryAfter?: Millis): this {
    this.now += this.rate.delay(this.now);
    this.rate.admit(this.now);
    this.one(answer, retryAfter);
    return this;
  }
}

/** 100 a second for a second, then four 429s: blocked at 1000. */
function blockedByRejections(random?: Random): Line {
  const line = new Line({}, random).serve(1000);
  expect(line.many(4, 'rejected')).toEqual(['first', undefined, undefined, 'blocked']);
  return line;
}

/** 100 a second for ten seconds, of which the last 200 ms failed: blocked at 10 000, or so. */
function blockedByErrors(settings: Partial<RateSettings> = {}): Line {
  const line = new Line(settings).serve(10_000);
  line.now += 1100; // the answers of the last second count, so let it pass
  const causes = line.many(60, 'failed');
  expect(causes.indexOf('errors')).toBeGreaterThanOrEqual(7);
  return line;
}

describe('four rejections in a row', () => {
  test('block', () => {
    const { rate } = blockedByRejections();
    expect(rate.phase).toBe('blocked');
    expect(rate.blockedUntil).toBe(1050);
  });

  test('with one accepted between do not', () => {
    const line = new Line().serve(1000);
    line.many(3, 'rejected');
    line.one('accepted');
    line.many(3, 'rejected');
    expect(line.rate.phase).not.toBe('blocked');
    expect(line.one('rejected')).toBe('blocked');
  });
});

describe('errors', () => {
  test('eight block, where they are half of the answers in 2 s', () => {
    const line = new Line();
    expect(line.many(7, 'failed')).toEqual(Array.from({ length: 7 }));
    expect(line.one('failed')).toBe('errors');
    expect(line.rate.phase).toBe('blocked');
  });

  test('fewer than half do not', () => {
    const line = new Line();
    line.many(9, 'accepted');
    line.many(8, 'failed');
    expect(line.rate.phase).toBe('open');
    expect(line.one('failed')).toBe('errors'); // 9 of 18
  });

  test('spread over more than 2 s do not', () => {
    const line = new Line();
    for (let i = 0; i < 30; i += 1) expect(line.at(400 * i).one('failed')).toBeUndefined();
  });

  test('are counted in two windows of a second, the second beginning where the first ended', () => {
    const errors = new ErrorAccount();
    for (let i = 0; i < 7; i += 1) errors.note(500, true);
    expect(errors.isAlarming(500)).toBe(false);
    errors.note(2400, true);
    expect(errors.isAlarming(2400)).toBe(true);
    expect(errors.isAlarming(2500)).toBe(false); // the seven are forgotten
    errors.clear();
    errors.note(2500, true);
    expect(errors.isAlarming(2500)).toBe(false);
  });
});

describe('while blocked', () => {
  test('one probe is due after 50 ms · U(0.75, 1.25), and no other while it is out', () => {
    for (const [u, wait] of [
      [0, 37.5],
      [0.5, 50],
      [0.999_999_999, 62.5],
    ] as const) {
      const { rate } = blockedByRejections(() => u);
      expect(rate.delay(1000)).toBeCloseTo(wait, 6);
      expect(rate.delay(1000 + wait)).toBeCloseTo(0, 6);
      rate.admit(1062.5);
      expect(rate.delay(1062.5)).toBe(30_000);
    }
  });

  test('each probe that fails doubles the wait, up to 5 s', () => {
    const line = blockedByRejections();
    const waits: Millis[] = [];
    for (let n = 0; n < 10; n += 1) {
      waits.push(line.rate.delay(line.now));
      line.probe(n % 2 === 0 ? 'rejected' : 'failed');
    }
    expect(waits).toEqual([50, 100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000]);
  });

  test('a Retry-After comes first: never earlier than asked', () => {
    const line = new Line().serve(1000);
    line.many(4, 'rejected', 700);
    expect(line.rate.delay(1000)).toBe(710);
    line.probe('failed', 2000);
    expect(line.rate.delay(line.now)).toBe(2010);
    line.probe('rejected', 1);
    expect(line.rate.delay(line.now)).toBe(200);
  });

  test('an answer to what had left before tells nothing new', () => {
    const line = blockedByRejections();
    line.at(1040);
    line.rate.rejected({ sentAt: 999, retryAfter: undefined, activeClients: 1 }, 1040);
    line.rate.failed(999, 1040, undefined);
    line.rate.accepted(999, 1040);
    expect(line.rate.phase).toBe('blocked');
    expect(line.rate.delay(1040)).toBe(10);
  });

  test('a probe that was not sent after all is replaced at once', () => {
    const line = blockedByRejections().at(1050);
    line.rate.admit(1050);
    line.rate.abandon();
    expect(line.rate.delay(1060)).toBe(0);
  });

  test('a probe without an answer is lost after 30 s', () => {
    const line = blockedByRejections().at(1050);
    line.rate.admit(1050);
    expect(line.rate.delay(31_049)).toBe(1);
    expect(line.rate.delay(31_050)).toBe(0);
  });

  test('while a probe is out, the end is expected when the next would leave if this one failed', () => {
    const line = blockedByRejections();
    expect(line.rate.expected(1000)).toBe(50);
    line.at(1050).rate.admit(1050);
    expect(line.rate.expected(1050)).toBe(100);
    expect(line.rate.expected(1120)).toBe(30);
    expect(line.rate.expected(2000)).toBe(0);
    line.one('failed');
    expect(line.rate.expected(1050)).toBe(100);
    line.at(1150).rate.admit(1150);
    expect(line.rate.expected(1150)).toBe(200);
  });

  test('the rate is what it is expected to come back to, within the bounds', () => {
    expect(Number.isFinite(blockedByErrors().rate.rate)).toBe(true);
    const line = new Line({ minRate: 50 });
    line.many(8, 'failed');
    expect(line.rate.rate).toBe(50);
  });
});

describe('when a probe is accepted', () => {
  test('after rejections the rate is 0.95 of what was accepted over ten times the blackout', () => {
    const line = blockedByRejections().probe('rejected').probe('rejected').probe('accepted'); // at 1350
    // 100 accepted in the first second, and the probe, and none else. Before that there was nothing to accept.
    expect(line.now).toBe(1350);
    expect(line.rate.phase).toBe('cooldown');
    expect(line.rate.ceiling).toBeCloseTo(101 / 1.35, 4);
    expect(line.rate.rate).toBeCloseTo((0.95 * 101) / 1.35, 4);
  });

  test('over no longer than that, however long all was well before', () => {
    const line = new Line().serve(20_000);
    line.many(4, 'rejected');
    line.probe('rejected').probe('rejected').probe('accepted'); // 350 ms: 3.5 s, from 16 000 on
    expect(line.rate.ceiling).toBeCloseTo(401 / 4.35, 4);
  });

  test('after a short blackout, over a second', () => {
    const line = new Line().serve(2000);
    line.many(4, 'rejected');
    line.probe('accepted');
    // From 1000 on, the bucket in which the second begins: 100 and the probe.
    expect(line.rate.rate).toBeCloseTo((0.95 * 101) / 1.05, 4);
  });

  test('after rejections it holds, then restores', () => {
    const line = blockedByRejections().probe('accepted');
    const { rate } = line.rate;
    line.rate.advance(2049, true);
    expect([line.rate.phase, line.rate.rate]).toEqual(['cooldown', rate]);
    line.rate.advance(2050, true);
    expect(line.rate.phase).toBe('restoring');
  });

  test('a long blackout is dear: held for longer', () => {
    const line = blockedByRejections();
    for (let n = 0; n < 4; n += 1) line.probe('rejected');
    line.probe('accepted'); // 50 + 100 + 200 + 400 + 800 ms
    expect(line.now).toBe(1000 + 1550);
    const held = 10 * (1550 / 2); // the cost is the mean of this and none
    line.rate.advance(line.now + held - 1, true);
    expect(line.rate.phase).toBe('cooldown');
    line.rate.advance(line.now + held, true);
    expect(line.rate.phase).toBe('restoring');
  });

  test('after errors it is half of the good rate at once, ramping back in 3 s', () => {
    const line = blockedByErrors({ initialRate: 100 });
    const good = 100;
    line.probe('accepted');
    expect(line.rate.phase).toBe('restoring');
    const { rate, ceiling } = line.rate;
    expect(ceiling).toBeLessThanOrEqual(good);
    expect(ceiling).toBeGreaterThan(0.85 * good);
    expect(rate).toBeCloseTo(ceiling / 2, 9);
    for (let u = 10; u <= 1500; u += 10) line.at(line.now + 10).many(1, 'accepted');
    expect(line.rate.rate).toBeCloseTo(ceiling - (ceiling / 2) * (1 - 1500 / 3000) ** 3, 6);
    for (let u = 10; u <= 1500; u += 10) line.at(line.now + 10).many(1, 'accepted');
    expect(line.rate.rate).toBeCloseTo(ceiling, 6);
    expect(line.rate.phase).toBe('restoring');
  });

  test('the ramp begins when the probe is answered, however long nothing had happened', () => {
    const line = blockedByErrors();
    for (let n = 0; n < 8; n += 1) line.probe('failed');
    line.now += line.rate.delay(line.now);
    line.rate.admit(line.now);
    line.rate.sent(line.now);
    line.rate.accepted(line.now, line.now + 900);
    const { rate, ceiling } = line.rate;
    line.now += 900;
    line.rate.advance(line.now, true);
    expect(line.rate.rate).toBe(rate);
    for (let u = 10; u <= 500; u += 10) line.at(line.now + 10).one('accepted');
    expect(line.rate.rate).toBeCloseTo(ceiling - (ceiling / 2) * (1 - 500 / 3000) ** 3, 6);
  });

  test('after errors where no limit had been felt, none is assumed once the ramp is over', () => {
    const line = blockedByErrors().probe('accepted');
    const back = line.now;
    expect(line.rate.rate).toBeLessThan(60);
    line.rate.advance(back + 2999, false);
    expect(line.rate.phase).toBe('restoring');
    line.rate.advance(back + 3000, false);
    expect(line.rate.phase).toBe('open');
    expect(line.rate.rate).toBe(Number.POSITIVE_INFINITY);
  });

  test('but one is, where it is felt during the ramp', () => {
    const line = blockedByErrors().probe('accepted');
    const back = line.now;
    line.at(back + 1000);
    expect(line.one('rejected')).toBe('heavy');
    line.at(back + 1001).one('accepted');
    line.rate.advance(back + 4000, true);
    expect(line.rate.phase).toBe('restoring');
  });

  test('and where it is felt so hard during the ramp that it blocks', () => {
    const line = blockedByErrors().probe('accepted');
    const back = line.now;
    line.at(back + 10);
    expect(line.many(4, 'rejected').at(-1)).toBe('blocked'); // within the epoch of the reopening: no cut of its own
    line.probe('accepted');
    line.rate.advance(line.now + 5000, true);
    line.rate.advance(line.now + 5001, true);
    expect(line.rate.phase).toBe('restoring');
    expect(line.rate.rate).toBeLessThan(Number.POSITIVE_INFINITY);
  });

  test('errors that come back during the ramp do not make it a limit', () => {
    const line = blockedByErrors().probe('accepted');
    line.at(line.now + 500).many(8, 'failed');
    expect(line.rate.phase).toBe('blocked');
    line.probe('accepted');
    line.rate.advance(line.now + 3000, false);
    expect(line.rate.phase).toBe('open');
  });
});
