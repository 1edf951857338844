import type { Experiment } from './experiment.ts';

/** One of several things that are compared. */
export interface Cell<Row> {
  /** A trial, a piece of a long one, or some thousand slots more. @returns whether that was a round */
  run(): boolean;
  /** What has come of it so far; undefined before there is anything. */
  row(): Row | undefined;
}

/** Cells in turn, round after round: stopped early, all of them have been tried about equally often. */
export class Rounds<Row> implements Experiment<readonly Row[]> {
  readonly #cells: readonly Cell<Row>[];
  readonly #rounds: number;
  #done = 0;

  /** @param rounds of each cell, ≥ 1 */
  constructor(cells: readonly Cell<Row>[], rounds: number) {
    this.#cells = cells;
    this.#rounds = rounds;
  }

  get progress(): number {
    return this.#cells.length === 0 ? 1 : this.#done / (this.#cells.length * this.#rounds);
  }

  step(): void {
    if (this.#cells[this.#done % this.#cells.length]?.run() === true) this.#done += 1;
  }

  /** Rows of those cells that have come to something, in their order. */
  result(): readonly Row[] {
    return this.#cells.map((cell) => cell.row()).filter((row) => row !== undefined);
  }
}
