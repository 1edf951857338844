/** Which requests of a worker or a replica send the probe of a block, once it has the token. */
import { describe, expect, test } from 'vitest';
import { Limit } from '../../../src/core/limits/limit.ts';
import type { RequestAttributes } from '../../../src/core/rate/breaker/request-attributes.ts';
import { ANY_REQUEST } from '../../../src/core/rate/breaker/request-attributes.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import { LeasedMeter } from '../../../src/sharing/protocol/leased-meter.ts';
import { initialTerms } from '../../../src/sharing/protocol/limit-terms.ts';
import { from } from '../../support/core/attributed-line.ts';

const [failing, good, unknown] = [
  from({ address: 'failing' }),
  from({ address: 'good' }),
  from({ address: 'unknown' }),
];
const SETTINGS = { initialRate: undefined, minRate: 1, maxRate: Number.POSITIVE_INFINITY, cooldown: 1000 };
const BEGUN = 100_000;
const VALID_FOR = 100;

function newMeter(): LeasedMeter {
  return new LeasedMeter(initialTerms(SETTINGS), () => undefined);
}

/** A member that has seen a failure, and perhaps a success, before a block. */
class BlockedMember {
  readonly meter: LeasedMeter;

  constructor(isGoodKnown: boolean, scope: RequestAttributes = ANY_REQUEST, meter = newMeter()) {
    this.meter = meter;
    meter.onFailed({ sentAt: BEGUN - 20, retryAfterMs: undefined, attributes: failing }, BEGUN - 10);
    if (isGoodKnown) meter.onAccepted(BEGUN - 20, meter.onSent(BEGUN - 20), BEGUN - 5, good);
    this.#update(scope, []);
  }

  /** The token of the probe arrives. */
  offer(slot: Millis): this {
    this.#update(this.meter.block()?.scope ?? ANY_REQUEST, [slot]);
    return this;
  }

  delay(source: RequestAttributes, now: Millis): Millis {
    return this.meter.delay(now, source);
  }

  #update(scope: RequestAttributes, slots: readonly Millis[]): void {
    const held = { heldClient: 0, heldClientUntil: Number.NEGATIVE_INFINITY };
    const probe = { probeAt: BEGUN + 50, expectedAt: BEGUN + 50 };
    const block = { cause: 'errors', scope, since: BEGUN, isPartial: false, ...probe, ...held } as const;
    const limits = { isUnlimited: false, rate: 10, blockedUntil: probe.probeAt, validFor: VALID_FOR };
    this.meter.applyUpdate({
      terms: { ...initialTerms(SETTINGS), epoch: 2, phase: 'blocked', ...limits, block },
      slots,
    });
  }
}

describe('of a block of all requests', () => {
  test('a sender that has failed here gives way for a twelfth of the time since the block began', () => {
    const member = new BlockedMember(false).offer(BEGUN + 6000);
    expect([failing, good, unknown].map((source) => member.delay(source, BEGUN + 6000))).toEqual([500, 0, 0]);
    expect(new BlockedMember(false).offer(BEGUN + 60_000).delay(failing, BEGUN + 60_000)).toBe(1250);
  });

  test('all give way to those whose requests were accepted before', () => {
    const member = new BlockedMember(true).offer(BEGUN + 6000);
    expect([failing, good, unknown].map((source) => member.delay(source, BEGUN + 6000))).toEqual([500, 0, 500]);
  });

  test('once all have given way that long, with one token after another, the next one is used', () => {
    const member = new BlockedMember(true);
    let slot = BEGUN + 6000;
    for (; slot < BEGUN + 6600; slot += VALID_FOR + 1) {
      expect(member.offer(slot).delay(unknown, slot)).toBeGreaterThan(0);
      expect(member.delay(unknown, slot + VALID_FOR + 1)).toBe(Number.POSITIVE_INFINITY); // returned
    }
    expect(member.offer(slot).delay(unknown, slot)).toBeLessThanOrEqual(0);
    expect(member.meter.take(slot, slot, unknown)).toBe(true);
    expect(member.offer(slot + 1000).delay(unknown, slot + 1000)).toBeGreaterThan(500);
  });
});

test('of a block that does not concern it, a request is no probe', () => {
  const member = new BlockedMember(true, from({ address: 'third' })).offer(BEGUN + 6000);
  expect(member.delay(failing, BEGUN + 6000)).toBe(Number.POSITIVE_INFINITY);
});

test('the senders of some accepted requests are wanted while nothing fails, and are not reported', () => {
  const meter = newMeter();
  const wanted = Array.from({ length: 17 }, () => {
    const { needsAttributes } = meter;
    meter.onAccepted(0, meter.onSent(0), 0, needsAttributes ? good : undefined);
    return needsAttributes;
  });
  expect(wanted.flatMap((each, i) => (each ? [i] : []))).toEqual([0, 8, 16]);
  expect(meter.usageLog.isRoutine).toBe(true);
});

test('at a limit of one client, no senders are wanted or recorded', () => {
  const meter = newMeter();
  meter.limit = new Limit({ upstream: 'up', nested: '', scope: 'client', key: 'one' }, meter);
  expect(meter.needsAttributes).toBe(false);
  const member = new BlockedMember(true, ANY_REQUEST, meter).offer(BEGUN + 6000);
  expect([failing, good, unknown].map((source) => member.delay(source, BEGUN + 6000))).toEqual([0, 0, 0]);
});
