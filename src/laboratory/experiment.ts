/**
 * Work in small steps, so that its runner can show progress and stop it. It uses no
 * clock and no output; the same seed gives the same result.
 */
export interface Experiment<Result> {
  /** Progress from 0 to 1; 1 when it is complete. */
  readonly progress: number;

  /** Does a step of some milliseconds. */
  step(): void;

  /** The result so far. */
  result(): Result;
}

/** Runs an experiment to its end. */
export function runToCompletion<Result>(experiment: Experiment<Result>): Result {
  while (experiment.progress < 1) experiment.step();
  return experiment.result();
}

/** The same experiment, with its result converted. */
export function mapResult<From, To>(experiment: Experiment<From>, map: (result: From) => To): Experiment<To> {
  return {
    get progress() {
      return experiment.progress;
    },
    step: () => experiment.step(),
    result: () => map(experiment.result()),
  };
}
