import type { Millis } from '../../core/scalars.ts';

/** Calls `run` once after this time, and does not keep the process running. @returns a function that cancels it */
export function backgroundTimer(delay: Millis, run: () => void): () => void {
  const timer = setTimeout(run, delay).unref();
  return () => clearTimeout(timer);
}
