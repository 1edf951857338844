import { describe, expect, test } from 'vitest';
import { listBackoffs, renderBackoff } from '../../../src/cli/backoff/backoff-report.ts';
import { BackOffOptionError, strategyNames } from '../../../src/core/backoff/strategies.ts';

describe('tidegate backoff NAME', () => {
  test('shows formula, source, options, sequence, plot and sums', () => {
    const { text } = renderBackoff({ strategy: 'envoy' }, { attempts: 4, plotWidth: 20 });
    expect(text).toBe(
      [
        "envoy: Envoy's retries: fully jittered, up to ten base intervals",
        '',
        '  delay    u · min(maxInterval, (2^(n + 1) − 1) · baseInterval)',
        '           n counts retries from 0, u is uniform on [0, 1)',
        '  mean     min(maxInterval, (2^(n + 1) − 1) · baseInterval) / 2',
        '  source   Envoy, HTTP router filter, x-envoy-max-retries',
        '  options  baseInterval 25ms, maxInterval 250ms',
        '',
        '  after attempt       min      mean       max',
        '              1         0    12.5ms      25ms  ░┃',
        '              2         0    37.5ms      75ms  ░░░┃░░',
        '              3         0    87.5ms     175ms  ░░░░░░░┃░░░░░░',
        '              4         0     125ms     250ms  ░░░░░░░░░░┃░░░░░░░░░',
        '         in all         0   262.5ms     525ms',
        '',
        '  █ always   ░ random part   ┃ mean',
        "  Never gives up: the route's attempts or timeout end it.",
        '',
      ].join('\n'),
    );
  });

  test('reports when a strategy gives up and how long it has waited by then', () => {
    expect(renderBackoff({ strategy: 'doubling' }).text).toContain('Gives up after attempt 8, having waited 127s.');
    expect(renderBackoff({ strategy: 'ethernet' }, { attempts: 3 }).text).toContain(
      'Gives up after attempt 16, having waited 183.1ms on average, at most 366.1ms.',
    );
  });

  test('limits the total wait if waits depend on each other', () => {
    // Five waits of decorrelated-jitter-v2 are an increment from 0 to g(4 + u), g(4) = 15.98 and g(5) = 31.99, over 1.4.
    const { text } = renderBackoff({ strategy: 'decorrelated-jitter-v2' }, { attempts: 5 });
    expect(text).toMatch(/ in all +11\.42s +16\.48s +22\.85s\n/);
  });

  test('plots the fixed part of a wait apart from the random part', () => {
    const { text } = renderBackoff({ strategy: 'equal-jitter' }, { attempts: 1, plotWidth: 8 });
    expect(text).toContain('████░░┃░\n');
  });

  test('marks a delay too short for a column, and leaves zero delays blank', () => {
    const lines = renderBackoff({ strategy: 'fibonacci', baseInterval: 1 }).text.split('\n');
    expect(lines.find((line) => line.startsWith('              1'))).toBe(
      '              1         0         0         0',
    );
    const doubling = renderBackoff({ strategy: 'doubling' }, { plotWidth: 10 }).text.split('\n');
    expect(doubling.find((line) => line.startsWith('              1'))).toMatch(/1s {2}▏$/);
  });

  test('shows the options in effect with their units', () => {
    const { text } = renderBackoff({ strategy: 'table', table: [1, 10], slot: 0.25 });
    expect(text).toContain('  options  table [1, 10], slot 250µs\n');
    expect(renderBackoff({ strategy: 'grpc' }).text).toContain('multiplier 1.6, maxInterval 120s, jitter 0.2\n');
  });

  test('shows no plot for a strategy whose delays are all zero', () => {
    const { text, json } = renderBackoff({ strategy: 'fixed', baseInterval: 0 }, { attempts: 1 });
    expect(text).toContain('              1         0         0         0\n');
    expect(json.rows).toEqual([{ attempt: 1, min: 0, mean: 0, max: 0 }]);
  });

  test('shows long delays in hours and years, with separate columns', () => {
    const { text } = renderBackoff({ strategy: 'ethernet', slot: 2_073_600_000 }, { attempts: 10 });
    expect(text).toContain('  options  slot 576h\n');
    expect(text).toMatch(/^ {14}1 +0 +288h +576h /m);
    expect(text).toMatch(/^ {13}10 +0 +33\.61y +67\.22y /m);
    const { text: longest } = renderBackoff({ strategy: 'table', table: [999_999_999], slot: 2_073_600_000 });
    expect(longest).toMatch(/^ {14}1 +576h +32854209y +65708419y /m);
    expect(renderBackoff({ strategy: 'fixed', baseInterval: 35_999_000 }).text).toContain(' 35999s ');
  });

  test('rejects an impossible option', () => {
    expect(() => renderBackoff({ strategy: 'grpc', jitter: 2 })).toThrow(BackOffOptionError);
  });
});

describe('tidegate backoff NAME --json', () => {
  test('is one object of rows, with attempts counted from 1 and delays in ms', () => {
    expect(renderBackoff({ strategy: 'decorrelated-jitter' }, { attempts: 4 }).json).toEqual({
      rows: [
        { attempt: 1, min: 100, mean: 200, max: 300 },
        { attempt: 2, min: 100, mean: 350, max: 900 },
        { attempt: 3, min: 100, mean: 575, max: 2700 },
        { attempt: 4, min: 100, mean: 912.5, max: 8100 },
      ],
    });
  });

  test('omits rounding errors', () => {
    const { rows } = renderBackoff({ strategy: 'grpc' }).json;
    expect(rows.slice(0, 4).map((row) => row.mean)).toEqual([1000, 1600, 2560, 4096]);
    const ethernet = renderBackoff({ strategy: 'ethernet' }).json.rows;
    expect(ethernet.slice(0, 4).map((row) => row.mean)).toEqual([0.0256, 0.0768, 0.1792, 0.384]);
  });

  test('has ten rows, or all of a strategy that gives up, or as many as requested', () => {
    expect(renderBackoff({ strategy: 'full-jitter' }).json.rows).toHaveLength(10);
    expect(renderBackoff({ strategy: 'doubling' }).json.rows).toHaveLength(7);
    expect(renderBackoff({ strategy: 'ethernet' }).json.rows).toHaveLength(15);
    expect(renderBackoff({ strategy: 'ethernet' }, { attempts: 3 }).json.rows).toHaveLength(3);
    expect(renderBackoff({ strategy: 'doubling' }, { attempts: 30 }).json.rows).toHaveLength(7);
  });
});

test('tidegate backoff without a name lists every strategy with a line about it', () => {
  const lines = listBackoffs().trimEnd().split('\n');
  expect(lines.map((line) => line.trim().split(/ {2,}/)[0])).toEqual(strategyNames);
  for (const line of lines) expect(line).toMatch(/^ {2}\S+ {2,}\S.*$/);
});
