/** Work that yields now and then, so that it can be stopped. */
export type Trial<Result> = Generator<void, Result>;

/** Events handled between yields: some milliseconds. */
export const EVENTS_PER_YIELD = 20_000;

/** Runs a trial to its end. */
export function runTrial<Result>(trial: Trial<Result>): Result {
  for (;;) {
    const step = trial.next();
    if (step.done === true) return step.value;
  }
}
