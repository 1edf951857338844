import type { Millis } from './types.ts';

/** So many clients are remembered as held at one limit; beyond that the one that was held first is let go. */
const MOST = 1000;

/** Clients that the upstream told to wait before they come back to one of its limits. Elsewhere they may go. */
export class LimitHolds {
  readonly #until = new Map<string, Millis>();

  /** −Infinity where it is not held. @param client hashed identity */
  until(client: string): Millis {
    return this.#until.get(client) ?? Number.NEGATIVE_INFINITY;
  }

  hold(client: string, until: Millis, now: Millis): void {
    const before = this.until(client);
    this.#until.delete(client);
    this.#until.set(client, Math.max(before, until));
    for (const [each, end] of this.#until) {
      if (end > now && this.#until.size <= MOST) break;
      this.#until.delete(each);
    }
  }

  forgive(client: string): void {
    this.#until.delete(client);
  }
}
