import { describe, expect, test } from 'vitest';
import { LIMIT_CASES, runLimitCase, SHARING_CASES } from '../support/laboratory/limit-cases.ts';

const TRAFFIC = [0.8, 1.5, 3].flatMap((load) =>
  (['poisson', 'bursty'] as const).map((arrivals) => ({ load, arrivals, seed: 11 })),
);

describe.each(LIMIT_CASES)('a log of a $name', (limitCase) => {
  test.each(TRAFFIC)('shows the kind of limit and its numbers at $load of its capacity, $arrivals', (traffic) => {
    const { identified, isEnough, areNumbersRight } = runLimitCase(limitCase, traffic);
    if (!isEnough) {
      expect(['few', 'sure']).toContain(identified.confidence);
      expect(identified.confidence === 'sure' && identified.refused > 0).toBe(false);
      return;
    }
    expect(identified).toMatchObject({ kind: limitCase.kind, confidence: 'sure' });
    expect(areNumbersRight).toBe(true);
  });
});

describe.each(SHARING_CASES)('a log of $name', (limitCase) => {
  test.each([0.8, 0.9])('shows the workers at %f of its capacity', (load) => {
    const { identified, areNumbersRight } = runLimitCase(limitCase, { load, arrivals: 'poisson', seed: 11 });
    expect(identified).toMatchObject({ kind: 'sharing', confidence: 'sure' });
    expect(areNumbersRight).toBe(true);
  });

  test.each(TRAFFIC)('names no other kind and no other number at $load of its capacity, $arrivals', (traffic) => {
    const { identified, areNumbersRight } = runLimitCase(limitCase, traffic);
    expect(identified.confidence === 'sure' && !areNumbersRight).toBe(false);
  });
});
