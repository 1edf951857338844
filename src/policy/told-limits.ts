import type { Millis } from './types.ts';

/** So many clients are remembered, those that were answered last. */
const MOST = 16;
const RECENT: Millis = 300_000;

interface ToldLimit {
  readonly client: number;
  limit: number;
  /** When it was told so last. */
  at: Millis;
}

/** Which limit of a quota each client was told last: where they differ, it is not one quota. Bounded. */
export class ToldLimits {
  readonly #told: ToldLimit[] = [];

  /** Takes in one answer. Returns whether another client is told another limit these days. */
  note(client: number | undefined, limit: number | undefined, now: Millis): boolean {
    if (client === undefined || limit === undefined) return false;
    this.#note(client, limit, now);
    for (const other of this.#told) {
      if (now - other.at < RECENT && other.client !== client && other.limit !== limit) return true;
    }
    return false;
  }

  #note(client: number, limit: number, now: Millis): void {
    for (const own of this.#told) {
      if (own.client !== client) continue;
      own.limit = limit;
      own.at = now;
      return;
    }
    if (this.#told.length >= MOST) this.#dropOldest();
    this.#told.push({ client, limit, at: now });
  }

  #dropOldest(): void {
    let oldest = 0;
    for (let i = 1; i < this.#told.length; i += 1) {
      if ((this.#told[i]?.at ?? 0) < (this.#told[oldest]?.at ?? 0)) oldest = i;
    }
    this.#told.splice(oldest, 1);
  }
}
