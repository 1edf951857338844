import type { Experiment } from './experiment.ts';

/** One of the alternatives compared. */
export interface RoundRobinCell<Row> {
  /** Runs a trial, a part of a long one, or some thousand slots. @returns whether it completed a round */
  run(): boolean;
  /** The result so far; undefined before there is one. */
  row(): Row | undefined;
}

/** Runs the cells in turn, so that a run stopped early has tried all of them about equally often. */
export class RoundRobinExperiment<Row> implements Experiment<readonly Row[]> {
  readonly #cells: readonly RoundRobinCell<Row>[];
  readonly #rounds: number;
  #done = 0;

  /** @param rounds of each cell, ≥ 1 */
  constructor(cells: readonly RoundRobinCell<Row>[], rounds: number) {
    this.#cells = cells;
    this.#rounds = rounds;
  }

  get progress(): number {
    return this.#cells.length === 0 ? 1 : this.#done / (this.#cells.length * this.#rounds);
  }

  step(): void {
    if (this.#cells[this.#done % this.#cells.length]?.run() === true) this.#done += 1;
  }

  /** The rows of cells with a result, in order. */
  result(): readonly Row[] {
    return this.#cells.map((cell) => cell.row()).filter((row) => row !== undefined);
  }
}
