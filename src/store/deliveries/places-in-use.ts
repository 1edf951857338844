import type { Millis } from '../../core/scalars.ts';

/** After its last attempt began, a client counts as active for this time: others leave places to it. */
const ACTIVE_FOR: Millis = 60_000;

/** Of the places of a route, a ninth is left to others, and at least one. */
const LEFT_TO_OTHERS = 1 / 9;

interface Activity {
  readonly key: string;
  readonly at: Millis;
}

/** How many places of one route each client, or each sender, uses. Times are as they are stored. */
export class PlacesInUse {
  readonly #used = new Map<string, number>();
  #last: Activity | undefined;
  /** When any other than the last one was active. */
  #othersAt: Millis = -Infinity;

  /** An attempt begins. */
  add(key: string, now: Millis): void {
    this.#used.set(key, this.usedBy(key) + 1);
    if (this.#last !== undefined && this.#last.key !== key) this.#othersAt = this.#last.at;
    this.#last = { key, at: now };
  }

  /** It has ended. */
  remove(key: string): void {
    const used = this.usedBy(key) - 1;
    if (used > 0) this.#used.set(key, used);
    else this.#used.delete(key);
  }

  usedBy(key: string): number {
    return this.#used.get(key) ?? 0;
  }

  /** How many more it may use: all, unless others were active of late. @param concurrency places of the route in all */
  leftFor(key: string, concurrency: number, now: Millis): number {
    const othersAt = this.#last?.key === key ? this.#othersAt : (this.#last?.at ?? -Infinity);
    if (now - othersAt > ACTIVE_FOR || !Number.isFinite(concurrency)) return Infinity;
    const left = concurrency === 1 ? 0 : Math.max(1, Math.floor(concurrency * LEFT_TO_OTHERS));
    return Math.max(0, concurrency - left - this.usedBy(key));
  }
}
