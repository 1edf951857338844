import { KeptPlaces } from './kept-places.ts';

/**
 * Where the next turns begin of clients and groups that have left a queue, in virtual time: sooner than those of new ones, if they
 * left unserved, or later, if their last requests have cost more than one unit.
 */
export class TurnStarts {
  readonly #unserved = new KeptPlaces();
  /** Created on first use. */
  #charged: KeptPlaces | undefined = undefined;

  keep(key: number | string, startTag: number): void {
    this.#unserved.set(key, startTag);
  }

  isKept(key: number | string): boolean {
    return this.#unserved.get(key) !== undefined;
  }

  /** The next turn begins at this time, however soon the client returns. */
  charge(key: number | string, startTag: number): void {
    (this.#charged ??= new KeptPlaces()).set(key, startTag);
  }

  /** Corrects `charge` by a virtual time, also a negative one. @param longest how far after virtual time the turn may begin for that */
  settle(key: number | string, by: number, longest: number, virtualTime: number): void {
    const start = Math.max(virtualTime, this.#charged?.get(key) ?? virtualTime);
    this.charge(key, by > 0 ? Math.max(start, Math.min(virtualTime + longest, start + by)) : start + by);
  }

  /** Drops what `charge` and `settle` have kept. */
  forgive(): void {
    this.#charged = undefined;
  }

  /** When the next turn of a client begins; −Infinity if nothing is known of it. */
  find(key: number | string): number {
    const kept = this.#unserved.get(key) ?? Number.NEGATIVE_INFINITY;
    return Math.max(kept, this.#charged?.get(key) ?? kept);
  }

  /** Returns when the turn begins of one that returns, at most one turn before the virtual time. It is not kept any longer. */
  take(key: number | string, weight: number, virtualTime: number): number {
    const kept = this.#unserved.take(key);
    const charged = this.#charged?.take(key);
    if (charged !== undefined && charged > virtualTime) return charged;
    const earliest = kept ?? charged;
    return earliest === undefined ? virtualTime : Math.min(virtualTime, Math.max(earliest, virtualTime - 1 / weight));
  }
}
