import type { Requester } from './requester.ts';
import { differ } from './requester.ts';
import type { Millis, Quota } from '../exchange/attempt-outcome.ts';

/** So many clients are remembered, those that were answered last; fewer of an address that has many of them. */
const MOST = 16;
const RECENT: Millis = 300_000;
/** Within this time a quota that all share does not fall by far. */
const JUST_NOW: Millis = 60_000;
/** One that is whole again so soon may fall from all to nothing at any time. */
const SOON: Millis = 3000;

/** By so many, or such a part of the limit, what is left may be told in another order than it was counted. */
const OVERTAKEN = 10;
const OVERTAKEN_PART = 0.1;
/** A cap for small limits, of which ten requests may be all. */
const MOST_OVERTAKEN = 0.25;

/**
 * How far two answers may differ only because they overtook each other.
 * @param isInOrder the request was sent after the other answer had arrived, so that only late counting in the upstream remains
 */
export function overtakenBy(limit: number | undefined, isInOrder = false): number {
  if (limit === undefined) return OVERTAKEN;
  const part = OVERTAKEN_PART * limit;
  return isInOrder ? Math.max(1, part) : Math.min(Math.max(OVERTAKEN, part), MOST_OVERTAKEN * limit);
}

interface ToldLimit {
  readonly client: number;
  readonly address: number | undefined;
  readonly credential: number | undefined;
  readonly limit: number | undefined;
  readonly remaining: number;
  readonly at: Millis;
}

/** What each client was told last of a quota: it shows whether they have one together. Bounded. */
export class ToldLimits {
  readonly #told: ToldLimit[] = [];

  /** Takes in one answer. Returns whether another client is told another limit these days. */
  note({ client, address, credential }: Requester, { limit, remaining }: Quota, now: Millis): boolean {
    if (client === undefined) return false;
    this.#keep({ client, address, credential, limit, remaining, at: now });
    for (const other of this.#told) {
      if (now - other.at < RECENT && other.client !== client && differ(other.limit, limit)) return true;
    }
    return false;
  }

  /**
   * Whether a quota is one that several share: another address was told about the same of it, and nobody of far more just before. The
   * keys of one address are no evidence, for whoever has one may have many.
   */
  isCommon(requester: Requester, { limit, remaining, resetIn = 0 }: Quota, now: Millis): boolean {
    let isShared = false;
    for (const other of this.#told) {
      if (other.client === requester.client || other.limit !== limit || now - other.at > RECENT) continue;
      if (differ(other.credential, requester.credential)) continue;
      const isFarAbove = other.remaining > remaining + overtakenBy(limit);
      if (isFarAbove && resetIn >= SOON && now - other.at <= JUST_NOW) return false;
      const isAlike = Math.abs(other.remaining - remaining) <= overtakenBy(limit);
      isShared ||= differ(other.address, requester.address) && (isAlike || resetIn < SOON);
    }
    return isShared;
  }

  #keep(told: ToldLimit): void {
    for (let i = 0; i < this.#told.length; i += 1) {
      if (this.#told[i]?.client === told.client) {
        this.#told[i] = told;
        return;
      }
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
