import { describe, expect, test } from 'vitest';
import { LocalMeter } from '../../../src/core/limits/local-meter.ts';
import { PlacesGate } from '../../support/core/places-gate.ts';

const POLITE = ['a', 'b', 'c', 'd', 'e'];
const PLACES = 30;

/** A known limit of 30 places. From the start, one client has 30 requests at a time; from 7 s on, five others have one of 100 ms a second. */
function besideSlow(takes: number, known = 10): PlacesGate {
  const at = new PlacesGate(PLACES, undefined, {}, (rate, random) => {
    const meter = new LocalMeter(rate, random);
    meter.resume(known, known, 0, PLACES);
    return meter;
  });
  at.closedLoop({ client: 'slow', takes }, PLACES, 0, 200);
  for (const [i, client] of POLITE.entries()) at.openLoop({ client, takes: 100 }, 1000, 7000 + 200 * i);
  return at;
}

function politeShare(at: PlacesGate): number {
  const counts = POLITE.map((client) => at.counts(client));
  return counts.reduce((sum, { served }) => sum + served, 0) / counts.reduce((sum, { asked }) => sum + asked, 0);
}

describe('a client whose slow requests take all places', () => {
  test.each([1500, 2000, 3000])('leaves others the places that become free: %i ms', (takes) => {
    const at = besideSlow(takes);
    at.run(7000);
    expect(at.counts('slow').held).toBe(PLACES);
    at.run(9000 + takes);
    for (const client of [...POLITE, 'slow']) at.counts(client).reset();
    at.run(60_000);
    expect(politeShare(at)).toBeGreaterThan(0.97);
    expect(at.counts('slow').served).toBeGreaterThan((0.7 * PLACES * 45_000) / takes);
  });

  test('does so also if the rate of a former process was far too low', () => {
    const at = besideSlow(3000, 0.1);
    at.run(12_000);
    for (const client of POLITE) at.counts(client).reset();
    at.run(60_000);
    expect(politeShare(at)).toBeGreaterThan(0.97);
  });

  test('has a rate of places ÷ service time, though it is the only one that asks', () => {
    const at = new PlacesGate(PLACES, undefined, {}, (rate, random) => {
      const meter = new LocalMeter(rate, random);
      meter.resume(100, 100, 0, PLACES);
      return meter;
    });
    at.closedLoop({ client: 'slow', takes: 3000 }, PLACES, 0);
    for (let seconds = 10; seconds < 60; seconds += 1) {
      at.run(1000 * seconds);
      const rate = at.gate.view(at.now).limits[0]?.rate ?? 0;
      expect(Math.abs(rate - PLACES / 3)).toBeLessThan(4);
    }
  });
});
