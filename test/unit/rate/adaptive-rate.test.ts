import { describe, expect, test } from 'vitest';
import type { CutCause } from '../../../src/core/limits/limit-state.ts';
import { AdaptiveRate } from '../../../src/core/rate/adaptive-rate.ts';
import type { RateSettings } from '../../../src/core/rate/rate-state.ts';
import type { Millis, PerSecond, Random } from '../../../src/core/scalars.ts';

/** U(0.75, 1.25) = 1. */
const MIDDLE: Random = () => 0.5;

/** An adaptive rate and its clock. Nothing happens except the events of the test. */
class Trial {
  readonly rate: AdaptiveRate;
  now: Millis = 0;

  constructor(settings: Partial<RateSettings> = {}) {
    this.rate = new AdaptiveRate(
      { initialRate: undefined, maxRate: Number.POSITIVE_INFINITY, minRate: 0.1, cooldown: 1000, ...settings },
      MIDDLE,
    );
  }

  /** Sends evenly until `end`, the first now; all are accepted after `rtt`, or stay in flight if that is undefined. */
  send(perSecond: PerSecond, end: Millis, { queued = true, rtt = undefined as Millis | undefined } = {}): this {
    const start = this.now;
    for (let i = 0; start + (1000 * i) / perSecond < end; i += 1) {
      this.now = start + (1000 * i) / perSecond;
      this.rate.advance(this.now, queued);
      this.rate.onSent(this.now);
      if (rtt !== undefined) this.rate.onAccepted(this.now, 0, this.now + rtt);
    }
    this.now = end;
    this.rate.advance(end, queued);
    return this;
  }

  reject(sentAt: Millis = this.now, retryAfter?: Millis, activeClients = 1): CutCause | undefined {
    return this.rate.onRejected({ sentAt, inFlightAtSend: 0, retryAfterMs: retryAfter, activeClients }, this.now);
  }

  accept(sentAt: Millis = this.now): void {
    this.rate.onAccepted(sentAt, 0, this.now);
  }

  at(now: Millis): this {
    this.now = now;
    return this;
  }

  advance(now: Millis, queued = true): this {
    this.now = now;
    this.rate.advance(now, queued);
    return this;
  }
}

/** 100 a second for a second, the last of them rejected at 1000: ceiling 99, cut to 89.1. */
function cutOnce(settings: Partial<RateSettings> = {}): Trial {
  const trial = new Trial(settings).send(100, 1000);
  expect(trial.reject(990)).toBe('first');
  return trial;
}

/** The same, and on through the cooldown, at 100 a second: restoring from 2000 on. */
function restoring(): Trial {
  const trial = cutOnce();
  trial.accept(1000);
  return trial.send(100, 2000);
}

/** Ceiling − (ceiling − cut)(1 − u/K)³, and ceiling · (1 + 0.05 · ((u − K)/(K/2))³) above. */
function curve(ceiling: PerSecond, cut: PerSecond, growFor: Millis, u: Millis): PerSecond {
  if (u < growFor) return ceiling - (ceiling - cut) * (1 - u / growFor) ** 3;
  return ceiling * (1 + 0.05 * ((u - growFor) / (growFor / 2)) ** 3);
}

describe('open', () => {
  test('imposes no limit before the first rejection', () => {
    const { rate } = new Trial().send(500, 3000, { rtt: 10 });
    expect(rate.phase).toBe('open');
    expect(rate.rate).toBe(Number.POSITIVE_INFINITY);
    expect(rate.delay(3000)).toBe(0);
    expect(rate.breaker.probeAt).toBeUndefined();
  });

  test('limits to a maximum from the start', () => {
    const { rate } = new Trial({ maxRate: 50 }).send(50, 3000, { rtt: 10 });
    expect(rate.phase).toBe('open');
    expect(rate.rate).toBe(50);
  });
});

describe('the first 429', () => {
  test('cuts to 0.9 of what was accepted over the last second, and stores that as the ceiling', () => {
    const { rate } = cutOnce();
    expect(rate.phase).toBe('backoff');
    expect(rate.ceiling).toBe(99);
    expect(rate.rate).toBeCloseTo(89.1, 9);
  });

  test('looks back one second, not further', () => {
    const trial = new Trial().send(1000, 5000).send(20, 6000);
    expect(trial.reject(5950)).toBe('first');
    expect(trial.rate.ceiling).toBe(19);
  });

  test('soon after the first request looks back to that, but at least 250 ms, because a burst is no rate', () => {
    const early = new Trial().send(100, 500);
    expect(early.reject(490)).toBe('first');
    expect(early.rate.ceiling).toBe(49 / 0.5);
    const burst = new Trial().send(1000, 50);
    expect(burst.reject(40)).toBe('first');
    expect(burst.rate.ceiling).toBe(49 / 0.25);
  });

  test('without recent traffic shows little, so the rate starts from 5 a second', () => {
    const trial = new Trial().at(1000);
    trial.rate.onSent(1000);
    expect(trial.reject()).toBe('first');
    expect(trial.rate.ceiling).toBe(5);
    expect(trial.rate.rate).toBe(4.5);
  });

  test('keeps within the bounds', () => {
    expect(cutOnce({ minRate: 95 }).rate.rate).toBe(95);
    const { rate } = cutOnce({ maxRate: 40 });
    expect(rate.ceiling).toBe(40);
    expect(rate.rate).toBe(36);
  });

  test('cuts a limit created for it by the recorded history', () => {
    const trial = new Trial().at(12_345);
    trial.rate.history.preload(12_345, 40);
    trial.reject(12_300);
    expect(trial.rate.ceiling).toBeGreaterThan(38);
    expect(trial.rate.ceiling).toBeLessThanOrEqual(40);
  });
});

describe('the epoch of a cut', () => {
  test('includes rejections of requests sent before the cut, or within 200 ms of it', () => {
    const trial = cutOnce();
    for (const sentAt of [500, 1000, 1100, 1200]) {
      trial.at(1300).accept(1300);
      expect(trial.reject(sentAt)).toBeUndefined();
    }
    expect(trial.rate.rate).toBeCloseTo(89.1, 9);
    expect(trial.reject(1201)).toBe('heavy');
  });

  test('lasts until a request sent after the cut is accepted', () => {
    const trial = cutOnce();
    trial.at(1300).accept(999);
    expect(trial.reject(1299)).toBeUndefined();
    trial.at(1400).accept(1390);
    expect(trial.reject(1399)).toBe('small');
  });

  test('lasts longer at a longer round trip', () => {
    const trial = new Trial().send(100, 1000);
    for (let sentAt = 0; sentAt < 1000; sentAt += 10) trial.at(sentAt + 600).accept(sentAt);
    trial.at(1600).reject(990);
    trial.at(3000).accept(2400);
    // Accepted responses take 600 ms, rejections 610, and then 610 + (800 − 610) ÷ 8: the longer of them counts.
    expect(trial.reject(2200)).toBeUndefined();
    expect(trial.reject(2254)).toBe('small'); // after 1600 + 633.75 + (746 − 633.75) ÷ 8 = 2247.8
  });

  test('is based on a round trip smoothed by an eighth', () => {
    const trial = new Trial().send(100, 1000);
    trial.at(1400).accept(600); // 800 ms
    trial.at(1401).accept(1401); // 700 ms
    trial.at(1500).reject(990);
    trial.at(3000);
    trial.accept(3000); // 612.5 ms
    expect(trial.reject(2112)).toBeUndefined();
    expect(trial.reject(2113)).toBe('small');
  });
});

describe('a later 429', () => {
  test('cuts by 5 % once half of K has passed', () => {
    const trial = restoring().send(100, 4000); // u = 2000 of K = 3000
    const before = trial.rate.rate;
    expect(before).toBeCloseTo(curve(99, 89.1, 3000, 2000), 9);
    expect(trial.reject()).toBe('small');
    expect(trial.rate.rate).toBeCloseTo(0.95 * before, 9);
    expect(trial.rate.ceiling).toBe(before);
    expect(trial.rate.phase).toBe('backoff');
  });

  test.each([
    { accepted: 20, rejected: 20, share: 0.7, cause: 'heavy' },
    { accepted: 30, rejected: 10, share: 0.75, cause: 'heavy' },
    { accepted: 9, rejected: 3, share: 0.75, cause: 'heavy' },
    { accepted: 97, rejected: 3, share: 0.95, cause: 'heavy' },
    { accepted: 1, rejected: 2, share: 0.95, cause: 'small' }, // too few for a share
  ])('before half of K cuts to the share accepted since the last: $accepted, and not $rejected', (given) => {
    const trial = cutOnce().at(1200);
    for (let i = 0; i < given.accepted; i += 1) trial.accept(1000);
    for (let i = 1; i < given.rejected; i += 1) {
      expect(trial.reject(1000)).toBeUndefined(); // of the same epoch
      trial.accept(999); // a request sent before the cut does not count
    }
    trial.send(100, 3000); // u = 1000 of K = 3000
    const before = trial.rate.rate;
    expect(before).toBeCloseTo(curve(99, 89.1, 3000, 1000), 9);
    expect(trial.reject()).toBe(given.cause);
    expect(trial.rate.rate / before).toBeCloseTo(given.share, 9);
    // Two may be chance: then the ceiling of 99 falls by 3 %.
    expect(trial.rate.ceiling).toBeCloseTo(given.cause === 'small' ? Math.max(before, 0.97 * 99) : before, 9);
  });

  test('counts responses since the last cut only', () => {
    const trial = cutOnce().at(1200);
    for (let i = 0; i < 30; i += 1) {
      trial.accept(1000);
      expect(trial.reject(1000)).toBeUndefined();
    }
    trial.accept(1000);
    expect(trial.reject(1202)).toBe('heavy'); // 31 of 62: by 30 %
    const { rate } = trial.rate;
    trial.at(1500).accept();
    expect(trial.reject()).toBe('small');
    expect(trial.rate.rate).toBeCloseTo(0.95 * rate, 9);
  });

  test('keeps within the bounds', () => {
    const trial = cutOnce({ minRate: 90 });
    for (let now = 2000; now < 20_000; now += 1000) {
      trial.at(now).accept();
      trial.reject();
      expect(trial.rate.rate).toBe(90);
    }
  });
});

describe('the cooldown', () => {
  test('begins with the next accepted response to a request sent after the cut', () => {
    const trial = cutOnce();
    trial.at(1050).accept(999);
    expect(trial.rate.phase).toBe('backoff');
    trial.at(1060).accept(1001);
    expect(trial.rate.phase).toBe('cooldown');
  });

  test('prevents growth for its duration, whatever the demand', () => {
    const trial = cutOnce();
    trial.accept(1000);
    trial.send(100, 1990);
    expect(trial.rate.phase).toBe('cooldown');
    expect(trial.rate.rate).toBeCloseTo(89.1, 9);
    trial.advance(2000);
    expect(trial.rate.phase).toBe('restoring');
    expect(trial.rate.rate).toBeCloseTo(89.1, 9);
  });

  test('lasts as configured, whatever a rejection costs', () => {
    const endsAt = (settings: Partial<RateSettings>, retryAfter?: Millis): Millis => {
      const trial = new Trial(settings).send(100, 1000);
      trial.reject(990, retryAfter);
      trial.accept(1000);
      for (let now = 1000; now <= 100_000; now += 100) {
        if (trial.advance(now).rate.phase === 'restoring') return now - 1000;
      }
      return Number.NaN;
    };
    expect(endsAt({})).toBe(1000);
    expect(endsAt({ cooldown: 2500 })).toBe(2500);
    expect(endsAt({ cooldown: 40_000 })).toBe(40_000);
    expect(endsAt({}, 300_000)).toBe(1000);
  });
});

describe('restoring', () => {
  test('follows the cubic to the ceiling, and exceeds it slowly', () => {
    const trial = restoring();
    for (let u = 100; u <= 5000; u += 100) {
      trial.send(100, 2000 + u, { rtt: 0 });
      expect(trial.rate.rate).toBeCloseTo(curve(99, 89.1, 3000, u), 6);
      expect(trial.rate.phase).toBe('restoring');
    }
  });

  test.each([
    { clients: 1, growFor: 10_000 },
    { clients: 2, growFor: 5000 },
    { clients: 10, growFor: 3000 },
  ])('takes longer if rejections are costly: a Retry-After of 4 s, among $clients', ({ clients, growFor }) => {
    const trial = new Trial().send(100, 1000);
    trial.reject(990, 4000, clients); // cost: the mean of none and 4 s ÷ clients; five times that
    trial.accept(1000);
    trial.send(100, 2000).send(100, 2000 + growFor / 2);
    expect(trial.rate.rate).toBeCloseTo(curve(99, 89.1, growFor, growFor / 2), 6);
  });

  test.each([
    { rate: 9, seconds: 130 / 8.55 },
    { rate: 1, seconds: 60 },
    { rate: 100, seconds: 3 },
  ])('takes 130 sends for a rejection, 60 s at most: $rate a second', ({ rate, seconds }) => {
    const trial = new Trial({ initialRate: rate });
    for (let cut = 0; cut < 3; cut += 1) {
      expect(trial.reject()).toBe('small'); // at the ceiling
      expect(trial.rate.rate).toBeCloseTo(0.95 * rate, 6);
      trial.accept();
      const begun = trial.now + 1000;
      trial.send(2 * rate, begun);
      trial.send(2 * rate, begun + 500 * seconds);
      expect(trial.rate.rate).toBeCloseTo(curve(rate, 0.95 * rate, seconds, seconds / 2), 6);
      trial.send(2 * rate, begun + 1000 * seconds);
      expect(trial.rate.rate).toBeCloseTo(rate, 6);
    }
  });

  test('takes longer if several rejections were needed to find the limit', () => {
    const trial = new Trial({ initialRate: 10 });
    trial.reject();
    for (let i = 0; i < 3; i += 1) {
      trial.accept(-1); // sent before the cut, so that they are not in a row
      expect(trial.reject()).toBeUndefined(); // of the same epoch: four in all
    }
    trial.accept();
    const first = 130_000 / 9.5;
    trial.send(20, 1000).send(20, 1000 + first);
    expect(trial.rate.rate).toBeCloseTo(10, 6);
    expect(trial.reject()).toBe('small'); // the usual cost is now (1 + 4) / 2
    trial.accept();
    const begun = trial.now + 1000;
    const second = (2.5 * 130_000) / 9.5;
    trial.send(20, begun).send(20, begun + second / 2);
    expect(trial.rate.rate).toBeCloseTo(curve(10, 9.5, second, second / 2), 6);
  });

  test('pauses while demand is below the rate, and then continues from there', () => {
    const trial = restoring().send(100, 3000);
    trial.send(55, 4000, { queued: false });
    const { rate } = trial.rate; // the last second was used up by then
    trial.send(55, 34_000, { queued: false });
    expect(trial.rate.rate).toBe(rate);
    const u = 3000 * (1 - Math.cbrt((99 - rate) / (99 - 89.1)));
    trial.send(100, 34_500);
    expect(trial.rate.rate).toBeCloseTo(curve(99, 89.1, 3000, u + 500), 1);
  });

  test('continues while requests queue, however little of the rate is used', () => {
    const trial = restoring().send(50, 3500);
    expect(trial.rate.rate).toBeCloseTo(curve(99, 89.1, 3000, 1500), 6);
  });

  test('beyond the ceiling continues only while the rate is used up, even if requests queue', () => {
    const trial = restoring().send(60, 5000); // u = K
    expect(trial.rate.rate).toBe(99);
    trial.send(60, 60_000);
    expect(trial.rate.rate).toBe(99);
    trial.send(100, 61_000, { rtt: 0 }); // used up from some moment in this second on
    trial.send(100, 62_000, { rtt: 0 });
    expect(trial.rate.rate).toBeGreaterThan(curve(99, 89.1, 3000, 4000));
    expect(trial.rate.rate).toBeLessThan(curve(99, 89.1, 3000, 5000));
  });

  test('never exceeds the maximum', () => {
    const trial = cutOnce({ maxRate: 100 });
    trial.accept(1000);
    trial.send(200, 60_000, { rtt: 0 });
    expect(trial.rate.rate).toBe(100);
  });

  test('counts a long pause of the process as a second', () => {
    const trial = restoring().send(100, 2100);
    const { rate } = trial.rate;
    expect(rate).toBeCloseTo(curve(99, 89.1, 3000, 100), 6);
    trial.advance(3_600_000); // an hour
    expect(trial.rate.phase).toBe('restoring');
    trial.send(100, 3_600_500);
    expect(trial.rate.rate).toBeCloseTo(curve(99, 89.1, 3000, 100 + 1000 + 500), 6);
  });
});

describe('a long time without rejections', () => {
  test('opens the limit after 120 s at a rate that demand never reaches', () => {
    const trial = restoring().send(10, 121_000, { queued: false });
    expect(trial.rate.phase).toBe('restoring');
    trial.send(10, 121_200, { queued: false });
    expect(trial.rate.phase).toBe('open');
    expect(trial.rate.rate).toBe(Number.POSITIVE_INFINITY);
  });

  test('does not open the limit while the rate is used', () => {
    const trial = cutOnce({ maxRate: 99 });
    trial.accept(1000);
    trial.send(100, 200_000, { queued: false });
    expect(trial.rate.phase).toBe('restoring');
  });

  test('counts from the last 429', () => {
    const trial = restoring().send(10, 60_000, { queued: false });
    trial.accept();
    trial.reject(1100); // of an old epoch: a 429, but no cut
    trial.send(10, 179_900, { queued: false });
    expect(trial.rate.phase).toBe('restoring');
    trial.send(10, 180_200, { queued: false });
    expect(trial.rate.phase).toBe('open');
  });

  test('opens the limit to the maximum if there is one, and clears what was learned', () => {
    const trial = cutOnce({ maxRate: 500 });
    trial.accept(1000);
    trial.send(10, 125_000, { queued: false });
    expect(trial.rate.rate).toBe(500);
    expect(trial.reject()).toBe('first');
  });

  test('leaves the earlier rate as the ceiling if a rejection follows within 120 s', () => {
    const trial = restoring().send(10, 121_000, { queued: false });
    const earlier = trial.rate.rate;
    trial.send(10, 241_000, { queued: false });
    expect([trial.rate.phase, trial.reject()]).toEqual(['open', 'first']);
    expect(trial.rate.ceiling).toBe(earlier);
    expect(trial.rate.rate).toBeCloseTo(0.95 * earlier, 9);
  });

  test('leaves the accepted rate as the ceiling if the first rejection follows later', () => {
    const trial = restoring().send(10, 242_000, { queued: false });
    expect([trial.rate.phase, trial.reject()]).toEqual(['open', 'first']);
    expect(trial.rate.ceiling).toBe(10);
  });

  test('leaves the accepted rate as the ceiling if that is higher than the earlier rate', () => {
    const trial = restoring().send(10, 121_500, { queued: false }).send(300, 123_000);
    expect([trial.rate.phase, trial.reject()]).toEqual(['open', 'first']);
    expect(trial.rate.ceiling).toBeGreaterThan(290);
  });
});

test('the cost of a rejection is reset with the limit', () => {
  const trial = new Trial().send(100, 1000);
  trial.reject(990, 4000); // K = 10 s
  trial.accept(1000);
  trial.send(10, 125_000, { queued: false });
  expect(trial.rate.phase).toBe('open');
  trial.send(100, 126_000);
  expect(trial.reject()).toBe('first');
  const { ceiling, rate } = trial.rate;
  trial.accept();
  trial.send(100, 127_000).send(100, 128_500);
  expect(trial.rate.rate).toBeCloseTo(curve(ceiling, rate, 3000, 1500), 6);
});

describe('a configured limit', () => {
  test('applies at once, and grows slowly above', () => {
    const trial = new Trial({ initialRate: 100 });
    expect(trial.rate.phase).toBe('restoring');
    expect(trial.rate.rate).toBe(100);
    trial.send(100, 1000, { rtt: 0 });
    trial.send(100, 2500, { rtt: 0 });
    // 0.9 of it were sent in the last second from 900 ms on; the step that ends there counts.
    expect(trial.rate.rate).toBeCloseTo(curve(100, 100, 60_000, 60_000 + 110 + 1500), 6);
  });

  test('grows only if outcomes are reported', () => {
    const trial = new Trial({ initialRate: 100 }).send(100, 600_000);
    expect(trial.rate.rate).toBe(100);
    trial.accept();
    trial.send(100, 620_000); // half of K is not over
    expect(trial.rate.rate).toBeGreaterThan(100);
    trial.send(100, 700_000);
    const { rate } = trial.rate;
    expect(rate).toBeCloseTo(105, 1); // 1 + δ
    expect(trial.send(110, 1_200_000).rate.rate).toBe(rate);
    expect(trial.send(110, 1_300_000).rate.rate).toBe(100); // ten minutes after the last report
  });

  test('is limited to its bounds', () => {
    expect(new Trial({ initialRate: 100, maxRate: 60 }).rate.rate).toBe(60);
  });

  test('is cut by 5 %, and never cleared', () => {
    const trial = new Trial({ initialRate: 100 });
    expect(trial.reject()).toBe('small');
    expect(trial.rate.rate).toBe(95);
    trial.accept();
    trial.send(1, 400_000, { queued: false });
    expect(trial.rate.phase).toBe('restoring');
    expect(trial.rate.rate).toBeGreaterThanOrEqual(95);
  });
});
