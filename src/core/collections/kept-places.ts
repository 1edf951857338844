import { RecencyMap } from './recency-map.ts';

/** The places of this many clients are kept; beyond that, the oldest are lost. */
const MAX_PLACES = 1000;

/** The virtual times at which turns began, of clients and groups that have left a queue unserved. */
export class KeptPlaces {
  readonly #startTags = new RecencyMap<number | string, number>();

  get(key: number | string): number | undefined {
    return this.#startTags.get(key);
  }

  set(key: number | string, startTag: number): void {
    this.#startTags.set(key, startTag);
    if (this.#startTags.size > MAX_PLACES) this.#startTags.deleteOldest();
  }

  /** Returns a place, which is kept no longer. */
  take(key: number | string): number | undefined {
    const startTag = this.#startTags.get(key);
    this.#startTags.delete(key);
    return startTag;
  }
}
