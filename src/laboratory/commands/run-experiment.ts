import type { Experiment } from '../experiment.ts';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';

/** Where an experiment is run. */
export interface Surroundings {
  /** Shows how far it has come, from 0 to 1; undefined where nobody looks. */
  readonly show: ((progress: number) => void) | undefined;
  /** Told to stop. */
  readonly signal: AbortSignal;
  readonly now: () => Millis;
}

/** How long it works before it looks around. */
const STRETCH: Millis = 40;
/** Nobody needs a bar of what is over by then. */
const QUICK: Millis = 300;

/**
 * Runs an experiment to its end, or until it is told to stop.
 * @returns how far it has come: 1 at its end
 */
export async function conduct(experiment: Experiment<unknown>, { show, signal, now }: Surroundings): Promise<number> {
  const began = now();
  while (experiment.progress < 1 && !signal.aborted) {
    const until = now() + STRETCH;
    // A step at least, that what is stopped at once has something to show.
    do experiment.step();
    while (experiment.progress < 1 && now() < until);
    if (now() - began > QUICK) show?.(experiment.progress);
    // Signals are handled in between.
    await new Promise((resolve) => setImmediate(resolve));
  }
  return experiment.progress;
}
