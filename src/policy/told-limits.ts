import type { Requester } from './requester.ts';
import type { Millis, Quota } from './types.ts';

/** So many clients are remembered, those that were answered last; fewer of an address that has many of them. */
const MOST = 16;
const RECENT: Millis = 300_000;
/** What is left may be much less after this time, by what others ask for; and of a quota that is whole again soon, at once. */
const JUST_NOW: Millis = 60_000;
const SOON: Millis = 10_000;

/** By so many, or such a part of the limit, what is left may be told in another order than it was counted. */
const OVERTAKEN = 10;
const OVERTAKEN_PART = 0.1;

export function overtakenBy(limit: number): number {
  return Math.max(OVERTAKEN, OVERTAKEN_PART * limit);
}

interface ToldLimit {
  readonly client: number;
  readonly address: number;
  limit: number;
  remaining: number;
  /** When it was told so last. */
  at: Millis;
}

/** What each client was told last of a quota: where they are told what one quota cannot be, there are several. Bounded. */
export class ToldLimits {
  readonly #told: ToldLimit[] = [];

  /** Takes in one answer. Returns whether another client is told another limit these days. */
  note({ client, address }: Requester, { limit, remaining }: Quota, now: Millis): boolean {
    if (client === undefined || limit === undefined) return false;
    this.#note({ client, address: address ?? client, limit, remaining, at: now });
    for (const other of this.#told) {
      if (now - other.at < RECENT && other.client !== client && other.limit !== limit) return true;
    }
    return false;
  }

  /** Whether another client was just told of much more of the same limit: then this is not what is left of one quota. */
  isFarBelow({ client }: Requester, { limit, remaining, resetIn = 0 }: Quota, now: Millis): boolean {
    if (limit === undefined || resetIn < SOON) return false;
    for (const other of this.#told) {
      if (other.client === client || other.limit !== limit || now - other.at > JUST_NOW) continue;
      if (other.remaining > remaining + overtakenBy(limit)) return true;
    }
    return false;
  }

  #note(told: ToldLimit): void {
    for (const own of this.#told) {
      if (own.client !== told.client) continue;
      own.limit = told.limit;
      own.remaining = told.remaining;
      own.at = told.at;
      return;
    }
    if (this.#told.length >= MOST) this.#dropOne();
    this.#told.push(told);
  }

  /** The oldest of the address that has the most. */
  #dropOne(): void {
    let worst = 0;
    let most = 0;
    for (let i = 0; i < this.#told.length; i += 1) {
      let count = 0;
      for (const other of this.#told) if (other.address === this.#told[i]?.address) count += 1;
      if (count < most || (count === most && (this.#told[i]?.at ?? 0) >= (this.#told[worst]?.at ?? 0))) continue;
      most = count;
      worst = i;
    }
    this.#told.splice(worst, 1);
  }
}
