import type { QuotaOwner, Requester } from './requester.ts';
import { differ } from './requester.ts';
import { ToldLimits } from './told-limits.ts';
import type { Millis } from './types.ts';

/** A credential that was answered within this time is in use. */
const IN_USE: Millis = 300_000;
/** Where requesters were found to have quotas of their own, they are taken to have them for so long after the last sign of it. */
const APART_FOR: Millis = 600_000;

/**
 * Whom the answers at one limit tell of its quota: everybody, or each requester of its own. Nobody says so; what shows it is
 * that requests are authenticated differently, or that clients are told different limits in turn.
 */
export class QuotaAudience {
  /** Of the last answer. */
  #credential: number | undefined;
  #client: number | undefined;
  #limit: number | undefined;
  #notedAt: Millis = Number.NEGATIVE_INFINITY;
  #isCommon = false;
  #apartUntil: Millis = Number.NEGATIVE_INFINITY;
  readonly #told = new ToldLimits();

  /** Takes in one answer, whose quota has this limit. Returns whether it is believed to hold for more than its requester. */
  note(requester: Requester, limit: number | undefined, now: Millis): boolean {
    const { credential, client } = requester;
    const isOther = differ(this.#credential, credential);
    const isOtherInUse = isOther && now - this.#notedAt < IN_USE;
    if (this.#told.note(client, limit, now) || isOtherInUse) this.#apartUntil = now + APART_FOR;
    if (isOther || limit !== this.#limit) this.#isCommon = false;
    else if (differ(this.#client, client)) this.#isCommon = true;
    this.#credential = credential;
    this.#client = client;
    this.#limit = limit;
    this.#notedAt = now;
    return !this.isApart(now);
  }

  /** Goes on from what another process knew. */
  resume({ credential, client, isCommon }: QuotaOwner, now: Millis): void {
    this.#credential = credential;
    this.#client = client;
    this.#isCommon = isCommon;
    this.#notedAt = now;
  }

  /** Requesters have quotas of their own: nothing that one is told holds for another. */
  part(now: Millis): void {
    this.#apartUntil = now + APART_FOR;
  }

  isApart(now: Millis): boolean {
    return now < this.#apartUntil;
  }

  /** Whether what was told last is about this one too: as `isOf`, and makes no owner. */
  includes({ credential, client }: Requester): boolean {
    if (differ(this.#credential, credential)) return false;
    return this.#isCommon || !differ(this.#client, client);
  }

  get credential(): number | undefined {
    return this.#credential;
  }

  get client(): number | undefined {
    return this.#client;
  }

  /** Several clients were told the same. */
  get isCommon(): boolean {
    return this.#isCommon;
  }
}
