import { onTestFinished } from 'vitest';

const ends: (() => unknown)[] = [];

/** Runs this when the test ends or, in a program without tests, when it calls `endAll`. */
export function atEnd(run: () => unknown): void {
  if (process.env['VITEST'] === undefined) ends.push(run);
  else onTestFinished(async () => void (await run()));
}

/** Runs all of it, the last first, as a test does. */
export async function endAll(): Promise<void> {
  for (let run = ends.pop(); run !== undefined; run = ends.pop()) await run();
}
