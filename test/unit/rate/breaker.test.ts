import { describe, expect, test } from 'vitest';
import type { CutCause } from '../../../src/core/limits/limit-state.ts';
import { AdaptiveRate } from '../../../src/core/rate/adaptive-rate.ts';
import { ErrorWindow } from '../../../src/core/rate/breaker/error-window.ts';
import type { RateSettings } from '../../../src/core/rate/rate-state.ts';
import type { Millis, Random } from '../../../src/core/scalars.ts';

/** An adaptive rate that receives one request after another, each sent and answered at once. */
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

  /** Accepts one request every 10 ms until `end`. */
  serve(end: Millis): this {
    for (; this.now < end; this.now += 10) this.one('accepted');
    return this;
  }

  one(answer: 'accepted' | 'rejected' | 'failed', retryAfter?: Millis): CutCause | undefined {
    const { now, rate } = this;
    rate.advance(now, true);
    rate.onSent(now);
    if (answer === 'rejected') {
      return rate.onRejected({ sentAt: now, inFlightAtSend: 0, retryAfterMs: retryAfter, activeClients: 1 }, now);
    }
    if (answer === 'failed') return rate.onFailed({ sentAt: now, retryAfterMs: retryAfter }, now);
    rate.onAccepted(now, 0, now);
    return undefined;
  }

  many(count: number, answer: 'accepted' | 'rejected' | 'failed', retryAfter?: Millis): (CutCause | undefined)[] {
    return Array.from({ length: count }, () => this.one(answer, retryAfter));
  }

  /** Sends the next probe, answered at once. */
  probe(answer: 'accepted' | 'rejected' | 'failed', retryAfter?: Millis): this {
    this.now += this.rate.delay(this.now);
    this.rate.admit(this.now);
    this.rate.inFlightLimiter.releaseReservation();
    this.one(answer, retryAfter);
    return this;
  }
}

/** 100 a second until `end`, then a 429, and three more of requests sent after it: blocked at `end` + 1. */
function blockedByRejections(random?: Random, { end = 1000, retryAfter = undefined as Millis | undefined } = {}): Line {
  const line = new Line({}, random).serve(end);
  expect(line.one('rejected', retryAfter)).toBe('first');
  line.now += 1;
  expect(line.many(3, 'rejected', retryAfter)).toEqual([undefined, undefined, 'blocked']);
  return line;
}

/** 100 a second for ten seconds, of which the last 200 ms failed: blocked at about 10 000. */
function blockedByErrors(settings: Partial<RateSettings> = {}): Line {
  const line = new Line(settings).serve(10_000);
  line.now += 1100; // the responses of the last second count, so let it pass
  const causes = line.many(60, 'failed');
  expect(causes.indexOf('errors')).toBeGreaterThanOrEqual(7);
  return line;
}

describe('three rejections in a row', () => {
  test('block the upstream', () => {
    const { rate } = blockedByRejections();
    expect(rate.phase).toBe('blocked');
    expect(rate.breaker.probeAt).toBe(1051);
  });

  test('do not block with one acceptance between them', () => {
    const line = new Line().serve(1000);
    line.one('rejected');
    line.at(1001).many(2, 'rejected');
    line.one('accepted');
    line.many(2, 'rejected');
    expect(line.rate.phase).not.toBe('blocked');
    expect(line.one('rejected')).toBe('blocked');
  });

  test('do not block if they were sent together before anything was limited', () => {
    const line = new Line().serve(1000);
    expect(line.many(20, 'rejected').slice(1)).toEqual(Array.from({ length: 19 }));
    expect(line.rate.phase).toBe('backoff');
  });

  test('block if the limit was configured', () => {
    const line = new Line({ initialRate: 100 });
    expect(line.many(3, 'rejected')).toEqual(['small', undefined, 'blocked']);
  });
});

describe('errors', () => {
  test('block if there are eight, and half of the responses in 2 s', () => {
    const line = new Line();
    expect(line.many(7, 'failed')).toEqual(Array.from({ length: 7 }));
    expect(line.one('failed')).toBe('errors');
    expect(line.rate.phase).toBe('blocked');
  });

  test('do not block if they are fewer than half of the responses', () => {
    const line = new Line();
    line.many(9, 'accepted');
    line.many(8, 'failed');
    expect(line.rate.phase).toBe('open');
    expect(line.one('failed')).toBe('errors'); // 9 of 18
  });

  test('do not block if they are spread over more than 2 s', () => {
    const line = new Line();
    for (let i = 0; i < 30; i += 1) expect(line.at(400 * i).one('failed')).toBeUndefined();
  });

  test('are counted in two windows of a second, the second of which begins where the first ends', () => {
    const errors = new ErrorWindow();
    for (let i = 0; i < 7; i += 1) errors.onAnswer(500, true);
    expect(errors.exceedsThreshold(500)).toBe(false);
    errors.onAnswer(2400, true);
    expect(errors.exceedsThreshold(2400)).toBe(true);
    expect(errors.exceedsThreshold(2500)).toBe(false); // the seven are expired
    errors.clear(false, 0);
    errors.onAnswer(2500, true);
    expect(errors.exceedsThreshold(2500)).toBe(false);
  });
});

describe('while blocked', () => {
  test('one probe is due after 50 ms · U(0.75, 1.25), and no other while it is in flight', () => {
    for (const [u, wait] of [
      [0, 37.5],
      [0.5, 50],
      [0.999_999_999, 62.5],
    ] as const) {
      const { rate } = blockedByRejections(() => u);
      expect(rate.delay(1001)).toBeCloseTo(wait, 6);
      expect(rate.delay(1001 + wait)).toBeCloseTo(0, 6);
      rate.admit(1063.5);
      expect(rate.delay(1063.5)).toBe(2000);
    }
  });

  test('each failed probe makes the wait half as long again, up to 5 s', () => {
    const line = blockedByRejections();
    for (let n = 0; n < 14; n += 1) {
      expect(line.rate.delay(line.now)).toBeCloseTo(Math.min(5000, 50 * 1.5 ** n), 6);
      line.probe(n % 2 === 0 ? 'rejected' : 'failed');
    }
  });

  test('a Retry-After takes precedence: no probe is earlier', () => {
    const line = blockedByRejections(undefined, { retryAfter: 700 });
    expect(line.rate.delay(1001)).toBe(710);
    line.probe('failed', 2000);
    expect(line.rate.delay(line.now)).toBe(2010);
    line.probe('rejected', 1);
    expect(line.rate.delay(line.now)).toBe(112.5);
  });

  test('a response to an earlier send changes nothing', () => {
    const line = blockedByRejections();
    line.at(1040);
    line.rate.onRejected({ sentAt: 999, inFlightAtSend: 0, retryAfterMs: undefined, activeClients: 1 }, 1040);
    line.rate.onFailed({ sentAt: 999, retryAfterMs: undefined }, 1040);
    line.rate.onAccepted(999, 0, 1040);
    expect(line.rate.phase).toBe('blocked');
    expect(line.rate.delay(1040)).toBe(11);
  });

  test('a probe that was not sent is replaced at once', () => {
    const line = blockedByRejections().at(1051);
    line.rate.admit(1051);
    line.rate.breaker.abandonProbe();
    expect(line.rate.delay(1060)).toBe(0);
  });

  test('a probe without a response is replaced after 2 s, and each further one after twice as long, up to 30 s', () => {
    const { rate } = blockedByRejections();
    let now = 1051;
    for (const patience of [2000, 4000, 8000, 16_000, 30_000, 30_000]) {
      rate.admit(now);
      expect(rate.delay(now + patience - 1)).toBe(1);
      expect(rate.delay(now + patience)).toBe(0);
      now += patience;
    }
  });

  test('while a probe is in flight, the expected end is that of the next one', () => {
    const line = blockedByRejections();
    expect(line.rate.expectedDelay(1001)).toBe(50);
    line.at(1051).rate.admit(1051);
    expect(line.rate.expectedDelay(1051)).toBe(75);
    expect(line.rate.expectedDelay(1121)).toBe(5);
    expect(line.rate.expectedDelay(2000)).toBe(2000 - 1126);
    line.one('failed');
    expect(line.rate.expectedDelay(1051)).toBe(75);
    line.at(1126).rate.admit(1126);
    expect(line.rate.expectedDelay(1126)).toBe(112.5);
  });

  test('the rate is the one expected after recovery, within the bounds', () => {
    expect(Number.isFinite(blockedByErrors().rate.rate)).toBe(true);
    const line = new Line({ minRate: 50 });
    line.many(8, 'failed');
    expect(line.rate.rate).toBe(50);
  });
});

describe('when a probe is accepted', () => {
  test('after rejections the rate is 0.95 of what was accepted since requests began', () => {
    const line = blockedByRejections().probe('accepted'); // at 1051: the blackout is taken to end at 1026
    expect(line.now).toBe(1051);
    expect(line.rate.phase).toBe('cooldown');
    // 100 accepted in the first second, and the probe.
    expect(line.rate.ceiling).toBeCloseTo(101 / 1.026, 9);
    expect(line.rate.rate).toBeCloseTo((0.95 * 101) / 1.026, 9);
    const later = blockedByRejections(undefined, { end: 20_000 }).probe('accepted');
    expect(later.rate.ceiling).toBeCloseTo(2001 / 20.026, 9);
  });

  test('the blackout is assumed to end between the last failed probe and the accepted one', () => {
    const line = blockedByRejections(undefined, { end: 20_000 });
    for (let n = 0; n < 7; n += 1) line.probe('rejected');
    const failedAt = line.now;
    line.probe('accepted');
    const endedAt = (failedAt + line.now) / 2;
    expect(Math.floor(line.now / 1000)).toBe(Math.floor(endedAt / 1000)); // so that the probe counts as well
    expect(line.rate.ceiling).toBeCloseTo((1000 * 2001) / endedAt, 9);
  });

  test('after rejections the rate stays the same, and then grows', () => {
    const line = blockedByRejections().probe('accepted');
    const { rate } = line.rate;
    line.rate.advance(2050, true);
    expect([line.rate.phase, line.rate.rate]).toEqual(['cooldown', rate]);
    line.rate.advance(2051, true);
    expect(line.rate.phase).toBe('restoring');
    expect(line.rate.rate).toBe(rate);
  });

  test('after a long blackout, which is costly, growth takes longer', () => {
    const line = blockedByRejections();
    for (let n = 0; n < 9; n += 1) line.probe('rejected');
    const failedAt = line.now;
    line.probe('accepted');
    const blackout = (failedAt + line.now) / 2 - 1001;
    const growFor = 5 * (blackout / 2); // five times its cost, which is the mean of this cost and zero
    expect(growFor).toBeGreaterThan(3000);
    const { rate, ceiling } = line.rate;
    const begun = line.now + 1000;
    line.rate.advance(begun, true);
    for (let u = 500; u <= 3000; u += 500) line.rate.advance(begun + u, true);
    expect(line.rate.rate).toBeCloseTo(ceiling - (ceiling - rate) * (1 - 3000 / growFor) ** 3, 9);
  });

  test('after rejections from the start the rate still recovers', () => {
    const line = new Line();
    line.one('rejected'); // 5 a second are assumed
    line.at(1).many(3, 'rejected');
    while (line.now < 60_000) line.probe('rejected');
    line.probe('accepted');
    expect(line.rate.ceiling).toBe(2.5);
    expect(line.rate.rate).toBe(0.95 * 2.5);
    const end = line.now + 200_000;
    for (; line.now < end; line.now += 200) line.one('accepted');
    expect(line.rate.rate).toBeGreaterThan(5);
  });

  test('the accepted rate is measured since the last effective cut, from when that was made', () => {
    const line = new Line({ initialRate: 100 }).serve(1000);
    expect(line.one('rejected')).toBe('small');
    for (let sentAt = 1000; sentAt < 6000; sentAt += 10) line.rate.onSent(sentAt);
    line.rate.onAccepted(1000, 0, 6000); // only now does the rate learn that the cut was enough
    line.at(7000).many(3, 'rejected', 1000);
    line.probe('accepted');
    expect(line.now).toBe(8010); // the blackout is taken to end at 7505
    expect(line.rate.ceiling).toBeCloseTo(500 / 6.505, 9);
  });

  test('the accepted rate is measured since the last blackout, not before', () => {
    const line = new Line({ initialRate: 100 }).serve(10_000);
    line.many(3, 'rejected', 1000);
    line.probe('accepted');
    for (; line.now < 13_000; line.now += 100) line.one('accepted');
    line.rate.advance(line.now, true);
    line.many(3, 'rejected', 1000);
    const { ceiling } = line.rate; // far more than what was accepted since
    line.probe('accepted');
    expect(line.rate.rate).toBeCloseTo((0.95 * ceiling) / 2, 9);
    expect(line.rate.ceiling).toBeCloseTo((ceiling / 2 + ceiling) / 2, 9);
  });

  test('after a blackout as long as the last and soon after it, a penalty, the ceiling is 15 % lower', () => {
    const line = new Line({ initialRate: 100 }).serve(1000);
    line.many(3, 'rejected', 10_000);
    line.probe('accepted');
    line.at(line.now + 2000).one('accepted');
    line.many(3, 'rejected', 10_500);
    const { ceiling } = line.rate;
    line.probe('accepted');
    expect(line.rate.ceiling).toBeCloseTo(0.85 * ceiling, 9);
    expect(line.rate.rate).toBeCloseTo(0.95 * 0.85 * ceiling, 9);
  });

  test('after errors the rate is half of the good rate at once, and the whole after 3 s', () => {
    const line = blockedByErrors({ initialRate: 100 });
    const good = line.rate.rate;
    expect(good).toBeGreaterThanOrEqual(100);
    line.probe('accepted');
    expect(line.rate.phase).toBe('restoring');
    const { rate, ceiling } = line.rate;
    expect(ceiling).toBe(good);
    expect(rate).toBe(good / 2);
    for (let u = 10; u <= 1500; u += 10) line.at(line.now + 10).many(1, 'accepted');
    expect(line.rate.rate).toBeCloseTo(ceiling - (ceiling / 2) * (1 - 1500 / 3000) ** 3, 6);
    for (let u = 10; u <= 1500; u += 10) line.at(line.now + 10).many(1, 'accepted');
    expect(line.rate.rate).toBeCloseTo(ceiling, 6);
    expect(line.rate.phase).toBe('restoring');
  });

  test('the good rate is that of the last ten seconds if no limit was met, and at least 5', () => {
    const line = new Line().serve(10_000);
    line.at(13_000).many(8, 'failed');
    expect(line.rate.rate).toBe((700 + 8) / 10); // since 3000
    expect(line.probe('accepted').rate.ceiling).toBe(70.8);
    const fresh = new Line();
    fresh.many(8, 'failed');
    expect(fresh.rate.rate).toBe(8 / 0.25); // over the whole history
    const slow = new Line();
    for (let i = 0; i < 8; i += 1) slow.at(250 * i).one('failed');
    expect(slow.rate.rate).toBe(5);
  });

  test('after a recovery only errors in a row block again for ten seconds', () => {
    const line = blockedByErrors().probe('accepted');
    const since = line.now;
    for (let i = 0; i < 99; i += 1) line.at(since + 100 * i).one(i % 3 === 0 ? 'accepted' : 'failed');
    expect(line.rate.phase).not.toBe('blocked');
    line.at(since + 10_000).many(8, 'failed');
    expect(line.rate.phase).toBe('blocked');
    const again = blockedByErrors().probe('accepted');
    expect(again.many(7, 'failed')).not.toContain('errors');
    expect(again.one('failed')).toBe('errors');
  });

  test('a new block soon after uses the earlier accepted rate, not what the recovery admitted', () => {
    const line = blockedByErrors();
    const { rate } = line.rate;
    for (let i = 0; i < 5; i += 1) {
      line.probe('accepted');
      line.at(line.now + 9000).many(8, 'failed'); // open again for long, and hardly used
      expect(line.rate.rate).toBe(rate);
    }
  });

  test('the good rate is the ceiling if the rate was exceeded, because the rate is not the cause', () => {
    const goodRate = (overrun: boolean): number => {
      const line = new Line({ initialRate: 100 });
      line.one('rejected'); // 95, below 100
      for (let i = 0; i < 8; i += 1) line.rate.onFailed({ sentAt: 0, retryAfterMs: undefined, overrun }, 0);
      return line.probe('accepted').rate.ceiling;
    };
    expect(goodRate(false)).toBe(95);
    expect(goodRate(true)).toBe(100);
  });

  test('earlier errors are dropped, so one more does not block', () => {
    const line = blockedByErrors().probe('accepted');
    expect(line.one('failed')).toBeUndefined();
    expect(line.rate.phase).toBe('restoring');
  });

  test('the ramp begins at the response to the probe, however long the time before without responses', () => {
    const line = blockedByErrors();
    for (let n = 0; n < 8; n += 1) line.probe('failed');
    line.now += line.rate.delay(line.now);
    line.rate.admit(line.now);
    line.rate.onSent(line.now);
    line.rate.onAccepted(line.now, 0, line.now + 900);
    const { rate, ceiling } = line.rate;
    line.now += 900;
    line.rate.advance(line.now, true);
    expect(line.rate.rate).toBe(rate);
    for (let u = 10; u <= 500; u += 10) line.at(line.now + 10).one('accepted');
    expect(line.rate.rate).toBeCloseTo(ceiling - (ceiling / 2) * (1 - 500 / 3000) ** 3, 6);
  });

  test('after errors without an earlier limit, none is assumed once the ramp is over', () => {
    const line = blockedByErrors().probe('accepted');
    const back = line.now;
    expect(line.rate.rate).toBeLessThan(60);
    line.rate.advance(back + 2999, false);
    expect(line.rate.phase).toBe('restoring');
    line.rate.advance(back + 3000, false);
    expect(line.rate.phase).toBe('open');
    expect(line.rate.rate).toBe(Number.POSITIVE_INFINITY);
  });

  test('a limit is assumed if it is met during the ramp', () => {
    const line = blockedByErrors().probe('accepted');
    const back = line.now;
    line.at(back + 1000);
    expect(line.one('rejected')).toBe('small');
    line.at(back + 1001).one('accepted');
    line.rate.advance(back + 4000, true);
    expect(line.rate.phase).toBe('restoring');
  });

  test('a limit is assumed if rejections during the ramp block', () => {
    const line = blockedByErrors().probe('accepted');
    const back = line.now;
    line.at(back + 10);
    expect(line.many(3, 'rejected').at(-1)).toBe('blocked'); // within the epoch of the reopening: no separate cut
    line.probe('accepted');
    line.rate.advance(line.now + 5000, true);
    line.rate.advance(line.now + 5001, true);
    expect(line.rate.phase).toBe('restoring');
    expect(line.rate.rate).toBeLessThan(Number.POSITIVE_INFINITY);
  });

  test('errors that recur during the ramp do not create a limit', () => {
    const line = blockedByErrors().probe('accepted');
    line.at(line.now + 500).many(8, 'failed');
    expect(line.rate.phase).toBe('blocked');
    line.probe('accepted');
    line.rate.advance(line.now + 3000, false);
    expect(line.rate.phase).toBe('open');
  });
});
