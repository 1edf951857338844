import type { Millis } from '../../core/exchange/attempt-outcome.ts';

/**
 * The tokens that were lent last. One that was not spent can be had again, if none was lent for later: at a low rate
 * each is worth seconds.
 */
export class RecentTokens {
  readonly #most: number;
  /** When it may be used, and when the one before it was due. */
  readonly #tokens: { readonly slot: Millis; readonly before: Millis; isSpent: boolean }[] = [];

  /** @param most of more than these nobody says that they were not spent; an even number */
  constructor(most: number) {
    this.#most = most;
  }

  note(slot: Millis, before: Millis): void {
    this.#tokens.push({ slot, before, isSpent: true });
    if (this.#tokens.length > this.#most) this.#tokens.splice(0, this.#most / 2);
  }

  /** Returns back to when the last token was due, now that this one and perhaps others were not; undefined where later ones are out. */
  unspent(slot: Millis): Millis | undefined {
    for (let i = this.#tokens.length - 1; i >= 0; i -= 1) {
      const token = this.#tokens[i];
      if (token?.slot !== slot || !token.isSpent) continue;
      token.isSpent = false;
      break;
    }
    let before: Millis | undefined;
    for (let last = this.#tokens.at(-1); last !== undefined && !last.isSpent; last = this.#tokens.at(-1)) {
      before = last.before;
      this.#tokens.pop();
    }
    return before;
  }

  clear(): void {
    this.#tokens.length = 0;
  }
}
