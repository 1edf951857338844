/** Work that pauses now and then, so that nobody has to wait for its end. */
export type Trial<Result> = Generator<void, Result>;

/** How many events a trial handles before it pauses: some milliseconds. */
export const BREATH = 20_000;

/** To its end, without a pause. */
export function complete<Result>(trial: Trial<Result>): Result {
  for (;;) {
    const step = trial.next();
    if (step.done === true) return step.value;
  }
}
