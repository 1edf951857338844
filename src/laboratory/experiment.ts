/**
 * Work that is done a little at a time, so that whoever runs it can show how far it has come, and stop it. It knows no
 * clock and no output, and the same seed gives the same result.
 */
export interface Experiment<Result> {
  /** What has been done of it: from 0 to 1, and 1 when there is no more to do. */
  readonly progress: number;

  /** Does some milliseconds' worth more. */
  step(): void;

  /** What has come of it so far. */
  result(): Result;
}

/** To its end. */
export function finish<Result>(experiment: Experiment<Result>): Result {
  while (experiment.progress < 1) experiment.step();
  return experiment.result();
}

/** The same work, told in another way. */
export function retell<From, To>(experiment: Experiment<From>, tell: (result: From) => To): Experiment<To> {
  return {
    get progress() {
      return experiment.progress;
    },
    step: () => experiment.step(),
    result: () => tell(experiment.result()),
  };
}
