import type { Millis } from '../../core/exchange/attempt-outcome.ts';

/** The tokens that one leaseholder has of a limit, and what the lender is believed to think is wanted. */
export class LentTokens {
  /** When each in hand may be used, in order. */
  readonly #slots: Millis[] = [];
  /** Taken while nothing limited: not lent, and not to be given back. */
  #untold = 0;
  /** Taken by what is on its way. */
  #taken = 0;
  /** Those that have come, in all. */
  heard = 0;
  asked = 0;

  get inHand(): number {
    return this.#slots.length;
  }

  get first(): Millis | undefined {
    return this.#slots[0];
  }

  get last(): Millis | undefined {
    return this.#slots.at(-1);
  }

  /** Lent, and neither spent nor given back. */
  get outstanding(): number {
    return this.#slots.length + this.#taken;
  }

  /** Returns whether a lent one was taken: none is where nothing limits, or none is in hand. */
  take(isFree: boolean): boolean {
    const isLent = !isFree && this.#slots.shift() !== undefined;
    if (isLent) this.#taken += 1;
    else this.#untold += 1;
    return isLent;
  }

  /** Returns whether it was a lent one. */
  giveBack(): boolean {
    if (this.#untold > 0) {
      this.#untold -= 1;
      return false;
    }
    this.#taken = Math.max(0, this.#taken - 1);
    return true;
  }

  /** So many have come, whether they are kept or not. */
  hear(count: number): void {
    this.heard += count;
    this.asked -= count;
  }

  keep(slots: readonly Millis[]): void {
    for (const slot of slots) this.#slots.push(slot);
  }

  /** Returns those before this time, which are in hand no longer. */
  dropBefore(time: Millis): readonly Millis[] {
    let late = 0;
    for (const slot of this.#slots) if (slot < time) late += 1;
    return this.#slots.splice(0, late);
  }

  /** Returns those beyond so many, which are in hand no longer. */
  dropBeyond(count: number): readonly Millis[] {
    return this.#slots.splice(count);
  }
}
