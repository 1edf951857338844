import type { Millis, Random } from '../../core/scalars.ts';

const FIRST_DELAY: Millis = 100;
const MAX_DELAY: Millis = 10_000;
const STABLE_AFTER: Millis = 10_000;

/** The delay before a worker is replaced: U(½, 1) × 0.1 s, doubled for each worker in a row that exited early. */
export class RestartDelay {
  #shortLivedInRow = 0;

  /** @param lifetime of the worker that has exited */
  next(lifetime: Millis, random: Random): Millis {
    this.#shortLivedInRow = lifetime < STABLE_AFTER ? this.#shortLivedInRow + 1 : 0;
    return Math.min(MAX_DELAY, FIRST_DELAY * 2 ** Math.min(this.#shortLivedInRow, 16)) * (0.5 + 0.5 * random());
  }
}
