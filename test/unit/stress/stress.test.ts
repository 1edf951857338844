import { describe, expect, test } from 'vitest';
import { parseOptions } from '../../stress/options.ts';
import { readRunResult } from '../../stress/run-result.ts';

function reportOf(tests: readonly { readonly status: string; readonly failureMessages: readonly string[] }[]): string {
  const assertionResults = tests.map((each, index) => ({ ...each, fullName: `limit: it holds ${index}` }));
  return JSON.stringify({
    success: false,
    numPassedTests: tests.filter(({ status }) => status === 'passed').length,
    numPendingTests: 0,
    testResults: [{ name: 'a.test.ts', status: 'failed', message: 'cannot load', assertionResults }],
  });
}

describe('the options of repeated runs', () => {
  test('it runs all tests 20 times, then 5 times beside two loops, without options', () => {
    expect(parseOptions([])?.series).toEqual([
      { runs: 20, busyLoops: 0 },
      { runs: 5, busyLoops: 2 },
    ]);
  });

  test('it passes what follows -- to vitest', () => {
    expect(parseOptions(['--runs', '3', '--busy', '2', '--', 'test/unit', '--project', 'unit'])).toEqual({
      series: [{ runs: 3, busyLoops: 2 }],
      vitestArgs: ['test/unit', '--project', 'unit'],
    });
  });

  test.each([['--runs', '0'], ['--runs', '1.5'], ['--busy', '-1'], ['--loops', '2'], ['test/unit']])(
    'it refuses %s %s',
    (...args) => {
      expect(parseOptions(args)).toBeUndefined();
    },
  );
});

describe('the result of a run', () => {
  test('it names the file, the title and the error of a failed test', () => {
    const report = reportOf([
      { status: 'passed', failureMessages: [] },
      { status: 'failed', failureMessages: ['expected 1 to be 2'] },
    ]);
    expect(readRunResult(report, 1)).toEqual({
      passed: 1,
      skipped: 0,
      failures: [{ name: 'a.test.ts > limit: it holds 1', error: 'expected 1 to be 2' }],
    });
  });

  test('it names a file that does not load', () => {
    expect(readRunResult(reportOf([]), 1).failures).toEqual([{ name: 'a.test.ts', error: 'cannot load' }]);
  });

  test('it fails a run with an error between tests, and one without a report', () => {
    const report = JSON.stringify({ success: false, numPassedTests: 5, numPendingTests: 0, testResults: [] });
    expect(readRunResult(report, 1).failures).toHaveLength(1);
    expect(readRunResult(undefined, null).failures).toEqual([{ name: 'the run', error: 'no report, exit code null' }]);
  });
});
