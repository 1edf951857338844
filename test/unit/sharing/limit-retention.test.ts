import { describe, expect, test } from 'vitest';
import { LocalMeter } from '../../../src/core/limits/local-meter.ts';
import type { LimitRef } from '../../../src/core/limits/limit-ref.ts';
import type { RateSettings } from '../../../src/core/rate/rate-state.ts';
import type { Millis } from '../../../src/core/scalars.ts';
import { limitRetention } from '../../../src/sharing/replicas/limit-retention.ts';
import { MemoryBackend } from '../../../src/sharing/replicas/memory-backend.ts';
import { ReplicaMeter } from '../../../src/sharing/replicas/replica-meter.ts';

const KNOWN: RateSettings = { initialRate: 10, maxRate: 100, minRate: 0.1, cooldown: 1000 };
const UNKNOWN: RateSettings = { ...KNOWN, initialRate: undefined, maxRate: Number.POSITIVE_INFINITY };
const NOW: Millis = 1_000_000;

/** A meter with this many requests that were sent and accepted at NOW. */
function meterWith(settings: RateSettings, sends: number): LocalMeter {
  const meter = new LocalMeter(settings, () => 0.5);
  meter.advance(NOW, false);
  for (let i = 0; i < sends; i += 1) {
    meter.onSent(NOW);
    meter.onAccepted(NOW, 1, NOW);
    meter.onEnded(NOW);
  }
  return meter;
}

describe('a limit of a client, credential or path is kept', () => {
  test.each([KNOWN, UNKNOWN, { ...UNKNOWN, maxRate: 50 }])('for seconds while nothing was learned', (settings) => {
    expect(limitRetention(meterWith(settings, 0), settings, NOW)).toBe(3000);
    expect(limitRetention(meterWith(settings, 1), settings, NOW)).toBe(4000);
    expect(limitRetention(meterWith(settings, 100), settings, NOW)).toBe(103_000);
  });

  test('for half a minute for each request once the rate was met', () => {
    for (const settings of [KNOWN, UNKNOWN]) {
      const meter = meterWith(settings, 1);
      meter.onRejected({ sentAt: NOW, inFlightAtSend: 1, activeClients: 1, retryAfterMs: undefined }, NOW);
      expect(limitRetention(meter, settings, NOW)).toBeGreaterThanOrEqual(60_000);
    }
  });

  test('until the next request may be sent, and longer', () => {
    const slow: RateSettings = { ...KNOWN, initialRate: 0.01, maxRate: 0.01, minRate: 0.001 };
    const meter = new LocalMeter(slow, () => 0.5);
    meter.take(NOW, NOW);
    expect(limitRetention(meter, slow, NOW)).toBe(103_000);
    const stopped = meterWith(UNKNOWN, 0);
    stopped.stop(NOW + 600_000);
    expect(limitRetention(stopped, UNKNOWN, NOW)).toBe(603_000);
  });

  test('for an hour at most', () => {
    expect(limitRetention(meterWith(KNOWN, 4000), KNOWN, NOW)).toBe(3_600_000);
    const stopped = meterWith(UNKNOWN, 0);
    stopped.stop(NOW + 86_400_000);
    expect(limitRetention(stopped, UNKNOWN, NOW)).toBe(3_600_000);
  });
});

describe('a backend that has dropped a limit', () => {
  const ref = (key: string): LimitRef => ({ upstream: 'up', nested: '', scope: 'client', key });

  function open() {
    const meter = new ReplicaMeter(
      KNOWN,
      () => 0.5,
      () => undefined,
    );
    return { backend: new MemoryBackend(), meter };
  }

  /** Calls the backend as a replica does, with the reported usage. */
  function callWith(backend: MemoryBackend, meter: ReplicaMeter, key: string, now: Millis) {
    const { want, usage, leasedTokens, inFlight, unanswered, known } = meter.takeReport(0, now);
    const counts = { leasedTokens, inFlight, unanswered };
    const request = { replicaId: 'a', now, usage, ...counts, want, weight: 1, roundTrip: 0, known };
    const response = backend.serve(
      ref(key),
      KNOWN,
      { ...request, random: 0.5, waitingGroups: [], returningGroups: [] },
      now,
    );
    meter.applyResponse(response.terms, response.slots, now);
    return response.terms;
  }

  test('creates it again as configured and in the same epoch, if nothing was learned', () => {
    const { backend, meter } = open();
    const before = callWith(backend, meter, 'k', NOW);
    expect(before).toMatchObject({ phase: 'restoring', rate: 10, epoch: 1 });
    expect(callWith(backend, meter, 'k', NOW + 60_000)).toMatchObject({ phase: 'restoring', rate: 10, epoch: 1 });
  });

  test('restores it with what a replica has learned', () => {
    const { backend, meter } = open();
    callWith(backend, meter, 'k', NOW);
    meter.onSent(NOW + 10);
    meter.onRejected({ sentAt: NOW + 10, inFlightAtSend: 1, activeClients: 1, retryAfterMs: undefined }, NOW + 20);
    const { rate, epoch } = callWith(backend, meter, 'k', NOW + 30);
    expect(rate).toBeLessThan(10);
    const later = callWith(backend, meter, 'k', NOW + 600_000);
    expect(later.rate).toBeCloseTo(rate, 0);
    expect(later.epoch).toBeGreaterThan(epoch);
  });

  test('drops the limit of all requests only after an hour', () => {
    const { backend, meter } = open();
    callWith(backend, meter, '', NOW);
    meter.onSent(NOW + 10);
    expect(callWith(backend, meter, '', NOW + 30).sendCount).toBe(1);
    expect(callWith(backend, meter, '', NOW + 3_500_000).sendCount).toBe(1);
    expect(callWith(backend, meter, '', NOW + 7_200_000).sendCount).toBe(0);
  });
});
