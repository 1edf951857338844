import { setBounded } from './bounded-map.ts';

/** Counts requests by id. Keeps the latest 100,000 ids. */
export class AttemptCounter {
  readonly #seen = new Map<string, number>();

  /** Counts one request. @returns its number, from 1 */
  increment(id: string): number {
    const attempt = this.get(id) + 1;
    setBounded(this.#seen, id, attempt, 100_000);
    return attempt;
  }

  get(id: string): number {
    return this.#seen.get(id) ?? 0;
  }
}
