import type { Bound } from '../overload/resource-bound.ts';
import type { Millis } from '../exchange/attempt-outcome.ts';

const WINDOW: Millis = 2000;
/** More than one process serves in a window. */
const MOST = 25_000;
/**
 * How many clients are active behind each address. A key that nobody has verified nests within the address it comes
 * from: the address has one share, and its keys divide it, so that rotating them buys nothing.
 */
export class Nests {
  readonly #most: number;
  #uncounted = 0;
  /** Clients beside the first of each address, in this window and the last. */
  #extra = 0;
  #previousExtra = 0;
  #window = Number.NEGATIVE_INFINITY;
  #active = new Map<string, number>();
  #previous = new Map<string, number>();

  /** @param most addresses counted at a time; beyond them nobody is nested, which is what happens without this */
  constructor(most = MOST) {
    this.#most = most;
  }

  get bound(): Bound {
    return { name: 'addresses', used: this.#active.size / this.#most, reached: this.#uncounted };
  }

  /** Notes an arrival; a client counts once a window. */
  note(nest: string, now: Millis, previousArrival: Millis): void {
    this.#roll(now);
    if (Math.floor(previousArrival / WINDOW) === this.#window) return;
    const count = this.#active.get(nest);
    if (count !== undefined) this.#extra += 1;
    if (count !== undefined || this.#active.size < this.#most) this.#active.set(nest, (count ?? 0) + 1);
    else this.#uncounted += 1;
  }

  /** Clients active behind the address in this window or the last, whichever is more; at least 1. */
  clients(nest: string, now: Millis): number {
    this.#roll(now);
    return Math.max(1, this.#active.get(nest) ?? 0, this.#previous.get(nest) ?? 0);
  }

  /** How many clients more are active than addresses. */
  extra(now: Millis): number {
    this.#roll(now);
    return Math.max(this.#extra, this.#previousExtra);
  }

  #roll(now: Millis): void {
    const window = Math.floor(now / WINDOW);
    if (window === this.#window) return;
    const isNext = window === this.#window + 1;
    this.#previous = isNext ? this.#active : new Map<string, number>();
    this.#previousExtra = isNext ? this.#extra : 0;
    this.#extra = 0;
    this.#active = new Map();
    this.#window = window;
  }
}
