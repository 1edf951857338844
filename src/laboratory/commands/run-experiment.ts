import type { Experiment } from '../experiment.ts';
import type { Millis } from '../../core/scalars.ts';

/** What an experiment needs to run. */
export interface ExperimentContext {
  /** Shows progress from 0 to 1; undefined without a terminal. */
  readonly onProgress: ((progress: number) => void) | undefined;
  /** Aborted to stop it. */
  readonly signal: AbortSignal;
  readonly now: () => Millis;
}

/** Time between checks for progress and signals, in ms. */
const WORK_SLICE: Millis = 40;
/** A shorter run shows no progress bar. */
const PROGRESS_DELAY: Millis = 300;

/**
 * Runs an experiment to its end, or until it is stopped.
 * @returns its progress: 1 at its end
 */
export async function runExperiment(
  experiment: Experiment<unknown>,
  { onProgress, signal, now }: ExperimentContext,
): Promise<number> {
  const began = now();
  while (experiment.progress < 1 && !signal.aborted) {
    const until = now() + WORK_SLICE;
    // At least one step, so that a run stopped at once has a result.
    do experiment.step();
    while (experiment.progress < 1 && now() < until);
    if (now() - began > PROGRESS_DELAY) onProgress?.(experiment.progress);
    // Yields, so that signals are handled.
    await new Promise((resolve) => setImmediate(resolve));
  }
  return experiment.progress;
}
