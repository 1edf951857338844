import type { Millis } from '../../core/scalars.ts';

/**
 * The tokens that were leased last. An unspent one can be leased again if no later one is out: at a low rate each is worth
 * seconds.
 */
export class RecentTokens {
  readonly #capacity: number;
  /** When each may be used, and when the one before it was due. */
  readonly #tokens: { readonly slot: Millis; readonly before: Millis; isSpent: boolean }[] = [];

  /** @param capacity an even number; older tokens cannot be returned */
  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  record(slot: Millis, previousDue: Millis): void {
    this.#tokens.push({ slot, before: previousDue, isSpent: true });
    if (this.#tokens.length > this.#capacity) this.#tokens.splice(0, this.#capacity / 2);
  }

  /** Returns when the last spent token was due, to which the meter can be rewound; undefined while a later token is out. */
  markUnused(slot: Millis): Millis | undefined {
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
