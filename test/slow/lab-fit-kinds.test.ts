import { describe, expect, test } from 'vitest';
import { LIMIT_CASES, runLimitCase } from '../support/laboratory/limit-cases.ts';

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
