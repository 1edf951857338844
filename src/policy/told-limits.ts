import type { Millis } from './types.ts';

/** So many clients are remembered, those that were answered last. */
const MOST = 16;
const RECENT: Millis = 300_000;

interface ToldLimit {
  readonly client: number;
  limit: number;
  /** When it was told this limit for the first time, with no other since; and the last time. */
  since: Millis;
  at: Millis;
}

/** Which limit of a quota each client was told last: where they differ, it is not one quota. Bounded. */
export class ToldLimits {
  readonly #told: ToldLimit[] = [];

  /** Takes in one answer. Returns whether another client was told another limit after this one had been told this. */
  note(client: number | undefined, limit: number | undefined, now: Millis): boolean {
    if (client === undefined || limit === undefined) return false;
    const since = this.#note(client, limit, now);
    for (const other of this.#told) {
      const isRecent = other.at > since && now - other.at < RECENT;
      if (isRecent && other.client !== client && other.limit !== limit) return true;
    }
    return false;
  }

  /** Returns since when it is told this limit. */
  #note(client: number, limit: number, now: Millis): Millis {
    for (const own of this.#told) {
      if (own.client !== client) continue;
      if (own.limit !== limit) {
        own.limit = limit;
        own.since = now;
      }
      own.at = now;
      return own.since;
    }
    if (this.#told.length >= MOST) this.#dropOldest();
    this.#told.push({ client, limit, since: now, at: now });
    return now;
  }

  #dropOldest(): void {
    let oldest = 0;
    for (let i = 1; i < this.#told.length; i += 1) {
      if ((this.#told[i]?.at ?? 0) < (this.#told[oldest]?.at ?? 0)) oldest = i;
    }
    this.#told.splice(oldest, 1);
  }
}
