import { z } from 'zod';

/** What vitest's JSON report says of one run. */
const Report = z.object({
  success: z.boolean(),
  numPassedTests: z.number(),
  numPendingTests: z.number(),
  testResults: z.array(
    z.object({
      name: z.string(),
      status: z.string(),
      message: z.string(),
      assertionResults: z.array(
        z.object({ status: z.string(), fullName: z.string(), failureMessages: z.array(z.string()).nullish() }),
      ),
    }),
  ),
});

export interface FailedTest {
  /** The file and the title. */
  readonly name: string;
  readonly error: string;
}

export interface RunResult {
  readonly passed: number;
  readonly skipped: number;
  readonly failures: readonly FailedTest[];
}

/**
 * Reads the report of one run.
 * @param text undefined if the run left none
 * @param exitCode that of vitest: an error between tests fails the run, and no test
 */
export function readRunResult(text: string | undefined, exitCode: number | null): RunResult {
  if (text === undefined) return failedRun(`no report, exit code ${exitCode}`);
  const report = Report.safeParse(JSON.parse(text));
  if (!report.success) return failedRun('a report that cannot be read');
  const { testResults, numPassedTests, numPendingTests } = report.data;
  const failures = testResults.flatMap(({ name, status, message, assertionResults }) => {
    const tests = assertionResults.filter((test) => test.status === 'failed');
    if (tests.length === 0 && status === 'failed') return [{ name, error: message }];
    return tests.map((test) => ({
      name: `${name} > ${test.fullName}`,
      error: test.failureMessages?.join('\n') ?? 'no message',
    }));
  });
  if (failures.length === 0 && exitCode !== 0) {
    failures.push({ name: 'the run', error: `exit code ${exitCode} without a failed test: an error between tests` });
  }
  return { passed: numPassedTests, skipped: numPendingTests, failures };
}

function failedRun(error: string): RunResult {
  return { passed: 0, skipped: 0, failures: [{ name: 'the run', error }] };
}
