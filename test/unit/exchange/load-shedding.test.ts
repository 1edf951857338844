import { describe, expect, test } from 'vitest';
import { LoadShedder } from '../../../src/core/overload/load-shedding.ts';
import type { Millis } from '../../../src/core/scalars.ts';

const TICK = 100;
const BOUND = 500;

function start(): { shedding: LoadShedder; turn: (late: Millis, times?: number, heap?: number) => LoadShedder } {
  const shedding = new LoadShedder({ eventLoopDelay: BOUND, heapUsed: 0.75 });
  return {
    shedding,
    turn: (late, times = 1, heap = 0.1) => {
      for (let i = 0; i < times; i += 1) shedding.onSample(late, TICK + late, heap);
      return shedding;
    },
  };
}

describe('a late event loop', () => {
  test('sheds nothing while its delay is below the bound', () => {
    const { turn } = start();
    expect(turn(0, 50).shedShare).toBe(0);
    expect(turn(0.9 * BOUND, 200).shedShare).toBe(0);
    expect(turn(0, 1).isOverloaded).toBe(false);
  });

  test.each([BOUND, 2 * BOUND, 600_000])('sheds nothing for one pause of %s ms', (pause) => {
    const { turn } = start();
    turn(0, 20);
    expect(turn(pause).shedShare).toBe(0);
    for (let i = 0; i < 20; i += 1) expect(turn(0).isOverloaded).toBe(false);
  });

  test('sheds more with each late turn, but never every request', () => {
    const { turn } = start();
    turn(2 * BOUND, 2);
    const shares = Array.from({ length: 10 }, () => turn(2 * BOUND).shedShare);
    expect(shares.every((share, i) => share > (shares[i - 1] ?? 0))).toBe(true);
    expect(turn(2 * BOUND, 100).shedShare).toBeCloseTo(0.95, 10);
  });

  test('admits everything again within ten seconds, a tenth more each second', () => {
    const { shedding, turn } = start();
    turn(2 * BOUND, 100);
    turn(0, 15); // until the smoothed delay is below half of the bound
    const { shedShare } = shedding;
    turn(0, 10);
    expect(shedShare - shedding.shedShare).toBeCloseTo(0.1, 10);
    expect(turn(0, 90).shedShare).toBe(0);
  });

  test('keeps its shed share while the delay is between half of the bound and the bound', () => {
    const { shedding, turn } = start();
    turn(2 * BOUND, 5);
    turn(0.7 * BOUND, 15);
    const { shedShare } = shedding;
    expect(shedShare).toBeGreaterThan(0.3);
    expect(turn(0.7 * BOUND, 50).shedShare).toBe(shedShare);
  });

  test('is one episode while overload and recovery alternate, which ends after three seconds without shedding', () => {
    const { shedding, turn } = start();
    let changes = 0;
    let before = false;
    const count = (late: Millis, times: number): void => {
      for (let i = 0; i < times; i += 1) {
        turn(late);
        if (shedding.isOverloaded !== before) changes += 1;
        before = shedding.isOverloaded;
      }
    };
    for (let i = 0; i < 10; i += 1) {
      count(2 * BOUND, 5);
      count(0, 30);
    }
    expect(changes).toBe(1);
    count(0, 200);
    expect(changes).toBe(2);
    expect(shedding.shedShare).toBe(0);
  });
});

describe('a full heap', () => {
  test('sheds in proportion above its bound, and everything at a tenth above it', () => {
    const { turn } = start();
    expect(turn(0, 1, 0.75).shedShare).toBe(0);
    expect(turn(0, 1, 0.8).shedShare).toBeCloseTo(0.5, 10);
    expect(turn(0, 1, 0.85).shedShare).toBeCloseTo(1, 10);
    expect(turn(0, 1, 0.99).shedShare).toBe(1);
    expect(turn(0, 1, 0.99).cause).toBe('heap');
    expect(turn(0, 1, 0.5).shedShare).toBe(0);
  });

  test('never sheds if its bound is 1', () => {
    const shedding = new LoadShedder({ eventLoopDelay: BOUND, heapUsed: 1 });
    shedding.onSample(0, TICK, 0.999);
    expect(shedding.shedShare).toBe(0);
  });

  test('is reported as the cause only while it requires more shedding than the event loop', () => {
    const { turn } = start();
    turn(2 * BOUND, 20);
    expect(turn(2 * BOUND, 1, 0.76).cause).toBe('event_loop');
    expect(turn(0, 200, 0.76).cause).toBe('heap');
  });
});
