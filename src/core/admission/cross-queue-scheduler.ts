/** Beyond so many, those that have had no more than the rest are forgotten: they stand where newcomers do. */
const MOST = 1000;

/**
 * Whose turn it is where several lines wait for the tokens of one limit: each line knows its own next, and of those the
 * one goes first whose client has had least by its weight. A client that waits in many lines has one share.
 * Self-clocked, as the queue of each line is.
 */
export class Turns {
  readonly #tags = new Map<number, number>();
  #virtual = 0;

  /** Virtual time at which the next of this client will have been served: the least goes first. @param weight above 0 */
  finish(client: number, weight: number): number {
    return Math.max(this.#tags.get(client) ?? 0, this.#virtual) + 1 / weight;
  }

  served(client: number, weight: number): void {
    const tag = this.finish(client, weight);
    this.#virtual = Math.max(this.#virtual, tag - 1 / weight);
    this.#tags.set(client, tag);
    if (this.#tags.size <= MOST) return;
    for (const [each, last] of this.#tags) if (last <= this.#virtual) this.#tags.delete(each);
  }
}
