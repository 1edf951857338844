import type { Millis } from '../../policy/types.ts';

/** Of more than these nobody says that they were not spent. */
const MOST = 256;

/**
 * The tokens that were lent last. One that was not spent can be had again, if none was lent for later: at a low rate
 * each is worth seconds.
 */
export class RecentTokens {
  /** When it may be used, and when the one before it was due. */
  readonly #tokens: { readonly slot: Millis; readonly before: Millis; isSpent: boolean }[] = [];

  note(slot: Millis, before: Millis): void {
    this.#tokens.push({ slot, before, isSpent: true });
    if (this.#tokens.length > MOST) this.#tokens.splice(0, MOST / 2);
  }

  /** Returns back to when the last token was due, now that this one and perhaps others were not; undefined where later ones are out. */
  unspent(slot: Millis): Millis | undefined {
    const token = this.#tokens.findLast((each) => each.slot === slot && each.isSpent);
    if (token !== undefined) token.isSpent = false;
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
