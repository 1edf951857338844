import { AsyncLocalStorage } from 'node:async_hooks';
import type { TestContext } from 'vitest';
import { onTestFinished } from 'vitest';

/** The test that the present call belongs to. Vitest itself knows only the one that began last, of several side by side. */
const current = new AsyncLocalStorage<Pick<TestContext, 'onTestFinished'>>();
const ends: (() => unknown)[] = [];

/** Runs a test so that `atEnd` finds it. */
export function runAs<T>(test: Pick<TestContext, 'onTestFinished'>, run: () => T): T {
  return current.run(test, run);
}

/** Runs this when the test ends, also of several side by side, or, in a program without tests, when it calls `endAll`. */
export function atEnd(run: () => unknown): void {
  if (process.env['VITEST'] === undefined) ends.push(run);
  else (current.getStore()?.onTestFinished ?? onTestFinished)(async () => void (await run()));
}

/** Runs all of it, the last first, as a test does. */
export async function endAll(): Promise<void> {
  for (let run = ends.pop(); run !== undefined; run = ends.pop()) await run();
}
