import type { Millis } from '../../scalars.ts';

const MAX_SENDERS = 64;

/** The senders whose requests failed last, by address or by client, each with the time of its last failure. */
export class RecentFailures {
  /** See `hashToNumber`. */
  readonly #senders: number[] = [];
  readonly #failedAt: Millis[] = [];
  #next = 0;

  /** @param sender 0 if unknown */
  add(sender: number, now: Millis): void {
    if (sender === 0) return;
    let at = this.#find(sender);
    if (at < 0) {
      at = this.#next;
      this.#next = (at + 1) % MAX_SENDERS;
    }
    this.#senders[at] = sender;
    this.#failedAt[at] = now;
  }

  hasFailedSince(sender: number, since: Millis): boolean {
    const at = this.#find(sender);
    return at >= 0 && (this.#failedAt[at] ?? 0) >= since;
  }

  #find(sender: number): number {
    for (let i = 0; i < this.#senders.length; i += 1) if (this.#senders[i] === sender) return i;
    return -1;
  }
}
