import { describe, expect, test } from 'vitest';
import { runToCompletion } from '../../../src/laboratory/experiment.ts';
import { predictEfficiency } from '../../../src/laboratory/ethernet/predict-efficiency.ts';
import type { SegmentSettings } from '../../../src/laboratory/ethernet/ethernet-segment.ts';
import { FRAME_OVERHEAD_BITS, EthernetSegment, SLOT_BITS } from '../../../src/laboratory/ethernet/ethernet-segment.ts';
import { makeStudy } from '../../../src/laboratory/commands/make-study.ts';
import { makeBackOff } from '../../../src/core/backoff/strategies.ts';
import { seededRandom } from '../../../src/simulator/seeded-random.ts';

const FRAME = 1518 * 8;
const SATURATED = Number.POSITIVE_INFINITY;
const backOff = makeBackOff({ strategy: 'ethernet', slot: SLOT_BITS });

function run(settings: Partial<SegmentSettings>, time = 5000) {
  const segment = new EthernetSegment({
    stations: 1,
    frame: FRAME,
    load: SATURATED,
    backOff,
    random: seededRandom(1),
    ...settings,
  });
  segment.run(time);
  return segment.figures();
}

describe('a segment', () => {
  test('of one station loses no more than gaps and preambles', () => {
    const { efficiency, collisions, dropped, delay } = run({});
    expect(efficiency).toBeCloseTo(FRAME / (FRAME + FRAME_OVERHEAD_BITS), 3);
    expect({ collisions, dropped }).toEqual({ collisions: 0, dropped: 0 });
    expect(delay).toBeCloseTo((FRAME + FRAME_OVERHEAD_BITS) / 10_000, 2);
  });

  test('carries the offered load while that is small', () => {
    for (const stations of [5, 50]) {
      const { efficiency, dropped } = run({ stations, load: 0.2 }, 60_000);
      expect(Math.abs(efficiency - 0.2)).toBeLessThan(0.01);
      expect(dropped).toBe(0);
    }
  });

  test('with long frames matches Metcalfe and Boggs, and with more stations gives up more frames', () => {
    const few = run({ stations: 5 });
    const many = run({ stations: 100 });
    expect(Math.abs(few.efficiency - predictEfficiency(5, FRAME))).toBeLessThan(0.06);
    expect(Math.abs(many.efficiency - predictEfficiency(100, FRAME))).toBeLessThan(0.06);
    expect(many.dropped).toBeGreaterThan(few.dropped);
    expect(many.collisions).toBeGreaterThan(few.collisions);
    expect(many.p99).toBeGreaterThan(few.p99);
  });

  test('reports no delay if no frame arrives', () => {
    const { efficiency, delay, p99, collisions } = run({ stations: 1, load: 1e-9 }, 10);
    expect({ efficiency, delay, p99, collisions }).toEqual({
      efficiency: 0,
      delay: Number.POSITIVE_INFINITY,
      p99: Number.POSITIVE_INFINITY,
      collisions: 0,
    });
    const jammed = run({ stations: 2, backOff: makeBackOff({ strategy: 'fixed', baseInterval: 0 }) }, 100);
    expect(jammed.collisions).toBe(Number.POSITIVE_INFINITY);
  });

  test('collides forever without a backoff', () => {
    const { efficiency } = run({ stations: 2, backOff: makeBackOff({ strategy: 'fixed', baseInterval: 0 }) }, 100);
    expect(efficiency).toBe(0);
  });

  test('gives a frame up after 16 attempts', () => {
    // With constant draws both wait equally long after each collision.
    const { dropped, efficiency } = run({ stations: 2, random: () => 0 }, 1000);
    expect({ dropped, efficiency }).toEqual({ dropped: 1, efficiency: 0 });
  });
});

test('the expected efficiency falls to that of a contention of e − 1 slots', () => {
  expect(predictEfficiency(1, FRAME)).toBeCloseTo(FRAME / (FRAME + FRAME_OVERHEAD_BITS), 12);
  const endless = FRAME / (FRAME + FRAME_OVERHEAD_BITS + (Math.E - 1) * SLOT_BITS);
  expect(predictEfficiency(1e6, FRAME)).toBeCloseTo(endless, 6);
});

describe('tidegate lab ethernet', () => {
  function report(load: number | undefined) {
    const study = { study: 'ethernet', stations: [3, 10], frame: undefined, load, seconds: 1 } as const;
    return runToCompletion(makeStudy(study, 1, { env: {}, readFile: () => '' }));
  }

  test('of stations that always have a frame shows the expectation of Metcalfe and Boggs', () => {
    const { text, json, draw } = report(undefined);
    expect(text).toMatch(/ predicted /);
    expect(json).toMatchObject({ rows: [{ predicted: expect.closeTo(0.9382, 3) as number }, {}] });
    expect(draw()).toContain('>predicted</text>');
  });

  test('shows no figures of frames if no frame arrives', () => {
    const { text, json } = report(1e-9);
    expect(text).toMatch(/^ {2}3 +0\.0000 +– +– +0\.000 /m);
    expect(json).toMatchObject({ rows: [{ delay: null, p99: null, collisions: 0 }, {}] });
  });

  test('with a load states that a station waits for its frame before the next, and shows no expectation', () => {
    const { text, json, draw } = report(0.5);
    expect(text).toContain('closed loop');
    expect(text).not.toContain('redicted');
    expect(json).toMatchObject({ rows: [{ stations: 3, predicted: null }, { predicted: null }] });
    expect(draw()).not.toContain('redicted');
  });
});
