import type { Millis } from '../../core/scalars.ts';

/** The tokens that a member has of a limit, and the number that it has requested. */
export class LeasedTokens {
  /** When each token in hand may be used, in order. */
  readonly #slots: Millis[] = [];
  /** Taken while nothing limited: not leased, and not to be returned. */
  #takenUnlimited = 0;
  /** Taken by requests that are not sent yet. */
  #taken = 0;
  /** Tokens received so far. */
  received = 0;
  requested = 0;

  get inHand(): number {
    return this.#slots.length;
  }

  get first(): Millis | undefined {
    return this.#slots[0];
  }

  get last(): Millis | undefined {
    return this.#slots.at(-1);
  }

  /** Leased tokens that are neither spent nor returned. */
  get outstanding(): number {
    return this.#slots.length + this.#taken;
  }

  /** Returns whether a leased token was taken: not if nothing limits, or if none is in hand. */
  take(isUnlimited: boolean): boolean {
    const isLeased = !isUnlimited && this.#slots.shift() !== undefined;
    if (isLeased) this.#taken += 1;
    else this.#takenUnlimited += 1;
    return isLeased;
  }

  /** Returns whether it was a leased token. */
  release(): boolean {
    if (this.#takenUnlimited > 0) {
      this.#takenUnlimited -= 1;
      return false;
    }
    this.#taken = Math.max(0, this.#taken - 1);
    return true;
  }

  /** Counts received tokens, whether they are kept or not. */
  countReceived(count: number): void {
    this.received += count;
    this.requested -= count;
  }

  add(slots: readonly Millis[]): void {
    for (const slot of slots) this.#slots.push(slot);
  }

  /** Removes and returns the tokens before this time. */
  dropBefore(time: Millis): readonly Millis[] {
    let late = 0;
    for (const slot of this.#slots) if (slot < time) late += 1;
    return this.#slots.splice(0, late);
  }

  /** Removes and returns the tokens beyond the first `count`. */
  dropBeyond(count: number): readonly Millis[] {
    return this.#slots.splice(count);
  }
}
