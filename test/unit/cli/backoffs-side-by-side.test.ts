import { describe, expect, test } from 'vitest';
import { compareBackoffs } from '../../../src/cli/backoff/compare-backoffs.ts';
import { drawBackoffs } from '../../../src/cli/backoff/draw-backoffs.ts';
import type { BackOffStrategy, StrategyName } from '../../../src/core/backoff/strategies.ts';
import { makeBackOff, strategies, strategyNames } from '../../../src/core/backoff/strategies.ts';

function makeStrategies(...names: readonly StrategyName[]): BackOffStrategy[] {
  return names.map((strategy) => makeBackOff({ strategy }));
}

describe('tidegate backoff NAME NAME', () => {
  test('shows means in columns, sums, and bars on one scale', () => {
    const fixed = makeBackOff({ strategy: 'fixed', baseInterval: 100 });
    const full = makeBackOff({ strategy: 'full-jitter', baseInterval: 400 });
    const lines = compareBackoffs([fixed, full], 2, 80).text.split('\n');
    expect(lines).toContain('  after attempt     fixed  full-jitter');
    expect(lines).toContain('              1     100ms        200ms');
    expect(lines).toContain('         in all     200ms        600ms');
    expect(lines).toContain('        at most     200ms         1.2s');
    expect(lines).toContain('    2  fixed        █████');
    expect(lines).toContain('       full-jitter  ░░░░░░░░░░░░░░░░░░░░┃░░░░░░░░░░░░░░░░░░░');
  });

  test('shows which strategies have given up, and their total by then', () => {
    const { text } = compareBackoffs(makeStrategies('fixed', 'doubling'), undefined, 80);
    expect(text).toContain('       doubling  given up\n');
    expect(text).toContain('  doubling gives up after attempt 8, having waited 127s.\n');
  });

  test('shows as many waits as a strategy makes before it gives up, and marks no other as giving up', () => {
    for (const names of [
      ['fixed', 'ethernet'],
      ['fixed', 'sip', 'ethernet'],
    ] as const) {
      const { text, json } = compareBackoffs(makeStrategies(...names), undefined, 80);
      expect(json['fixed']?.rows).toHaveLength(15);
      expect(text).toMatch(/^ {13}15 +100ms /m);
      expect(text).not.toContain('given up');
    }
  });

  test('puts strategies that do not fit on the next rows, and stays within the terminal width', () => {
    const { text } = compareBackoffs(makeStrategies(...strategyNames), 3, 80);
    const tables = text.split('\n').filter((line) => line.startsWith('  after attempt'));
    expect(tables.length).toBeGreaterThan(1);
    expect(tables.flatMap((line) => line.split(/ {2,}/).slice(2))).toEqual(strategyNames);
    for (const line of tables) expect(line.length).toBeLessThanOrEqual(80);
  });

  describe('if bars would fill more than a screen', () => {
    test('has a line for each strategy, its means by height, on one logarithmic scale', () => {
      const { text } = compareBackoffs(makeStrategies('fixed', 'exponential', 'fibonacci', 'doubling'), undefined, 80);
      expect(text).toContain('The same on one logarithmic scale, from 100ms to 64s; · is no wait');
      expect(text).toContain('  fixed        ▁▁▁▁▁▁▁▁▁▁\n');
      // A delay that doubles gives steps of equal height.
      expect(text).toContain('  exponential  ▁▂▃▃▄▅▆▆▇▇\n');
      expect(text).toMatch(/^ {2}fibonacci {4}·▁▁/m);
      expect(text).toContain('  doubling     ▃▄▅▆▆▇█  given up\n');
      expect(text).toContain('--attempts 8 shows bars');
      expect(text).not.toContain('┃');
    });

    test('grows by a line per strategy, not per attempt, and stays within the terminal width', () => {
      const shown = compareBackoffs(makeStrategies(...strategyNames.slice(0, 10)), undefined, 80).text.split('\n');
      expect(shown.length).toBeLessThanOrEqual(60);
      const many = compareBackoffs(makeStrategies(...strategyNames), 300, 80).text.split('\n');
      const chart = many.slice(many.findIndex((line) => line.startsWith('The same on one')));
      expect(chart[0]).toContain('every ');
      expect(chart.length).toBeLessThan(30);
      const lines = chart.filter((line) => /[▁-█]/.test(line));
      expect(lines).toHaveLength(strategyNames.length);
      for (const line of lines) expect(line.length).toBeLessThanOrEqual(80);
    });

    test('shows only waits of 0 as 0', () => {
      const zero = [1, 2, 3, 4].map((i) => ({
        ...makeBackOff({ strategy: 'fixed', baseInterval: 0 }),
        name: `zero-${i}`,
      }));
      expect(compareBackoffs(zero, undefined, 80).text).toContain('  zero-4  ··········\n');
    });
  });

  test('as JSON has the rows of each strategy under its name', () => {
    const { json } = compareBackoffs(makeStrategies('fixed', 'sip'), 1, 80);
    expect(json).toEqual({
      fixed: { rows: [{ attempt: 1, min: 100, mean: 100, max: 100 }] },
      sip: { rows: [{ attempt: 1, min: 500, mean: 500, max: 500 }] },
    });
  });
});

describe('tidegate backoff --svg', () => {
  test('draws a line for each strategy, and a band where waits are random', () => {
    const drawing = drawBackoffs(makeStrategies('fixed', 'full-jitter'), undefined);
    expect(drawing.match(/class="band/g)).toHaveLength(1);
    expect(drawing).toContain('>full-jitter</text>');
    expect(drawing).not.toMatch(/NaN|Infinity|undefined/);
  });

  test.each(strategyNames)('draws %s', (name) => {
    const drawing = drawBackoffs(makeStrategies(name), undefined);
    expect(drawing).toMatch(/^<svg [\s\S]*<\/svg>\n$/);
    expect(drawing).not.toMatch(/NaN|Infinity|undefined/);
  });
});

test('a random strategy gives its mean in closed form, except the one that has none', () => {
  const random = makeStrategies(...strategyNames).filter((strategy) => {
    const band = strategy.band(3);
    return band !== undefined && band.min < band.max;
  });
  const without = random.filter(({ name }) => strategies[name as StrategyName].expectation === undefined);
  expect(without.map(({ name }) => name)).toEqual(['decorrelated-jitter-v2']);
});
