/** Beyond this many tags, those at or before virtual time are dropped: they equal the tag of a new client. */
const MAX_TAGS = 1000;

/**
 * Schedules several queues that wait for the tokens of one limit. Each queue knows its own next ticket; the one whose
 * client has received least by its weight goes first. A client that waits in many queues has one share, as have the clients of an address. Self-clocked, as
 * `FairQueue` is.
 */
export class CrossQueueScheduler {
  readonly #finishTags = new Map<string, number>();
  #virtualTime = 0;

  /** The virtual time at which the client's next request will have been served: the least goes first. @param weight > 0 */
  finishTag(client: string, weight: number): number {
    return Math.max(this.#finishTags.get(client) ?? 0, this.#virtualTime) + 1 / weight;
  }

  onServed(client: string, weight: number): void {
    const tag = this.finishTag(client, weight);
    this.#virtualTime = Math.max(this.#virtualTime, tag - 1 / weight);
    this.#finishTags.set(client, tag);
    if (this.#finishTags.size <= MAX_TAGS) return;
    for (const [each, last] of this.#finishTags) if (last <= this.#virtualTime) this.#finishTags.delete(each);
  }
}
