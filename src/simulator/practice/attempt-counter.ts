import { remember } from './bounded-map.ts';

/** How often each id has come. Remembers a hundred thousand ids. */
export class Attempts {
  readonly #seen = new Map<string, number>();

  /** Counts one more. @returns its number, from 1 */
  next(id: string): number {
    const attempt = this.of(id) + 1;
    remember(this.#seen, id, attempt, 100_000);
    return attempt;
  }

  of(id: string): number {
    return this.#seen.get(id) ?? 0;
  }
}
