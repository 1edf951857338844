import type { QuotaOwner, Requester } from './requester.ts';
import { differ } from './requester.ts';
import { overtakenBy, ToldLimits } from './reported-quotas.ts';
import type { Millis, Quota } from '../exchange/attempt-outcome.ts';

/** A credential that was answered within this time is in use. */
const IN_USE: Millis = 300_000;
/** Where requesters were found to have quotas of their own, they are taken to have them for so long after the last sign of it. */
const APART_FOR: Millis = 600_000;

const COARSE: Millis = 1000;
const SHORTEST: Millis = 3000;

/**
 * Whom the answers at one limit tell of its quota: everybody, or each requester of its own. Nobody says so; what shows it is
 * that requests are authenticated differently, that clients are told different limits, or that one is told of more than can be
 * left of what the other was told.
 */
export class QuotaAudience {
  /** Of the last answer. */
  #credential: number | undefined;
  #client: number | undefined;
  #limit: number | undefined;
  #remaining = 0;
  #resetIn: Millis | undefined;
  #notedAt: Millis = Number.NEGATIVE_INFINITY;
  #isCommon = false;
  #apartUntil: Millis = Number.NEGATIVE_INFINITY;
  readonly #told = new ToldLimits();

  /**
   * Takes in one answer. Returns whether its quota is believed to hold for more than its requester.
   * @param sentAt when its request was sent
   */
  note(requester: Requester, quota: Quota, sentAt: Millis, now: Millis): boolean {
    const { credential, client } = requester;
    const { limit, remaining } = quota;
    const isOther = differ(this.#credential, credential);
    const isOtherInUse = isOther && now - this.#notedAt < IN_USE;
    const isAnother = limit === this.#limit && differ(this.#client, client) && this.#isBeyond(quota, sentAt, now);
    if (this.#told.note(requester, quota, now) || isOtherInUse || isAnother) this.#apartUntil = now + APART_FOR;
    this.#isCommon = this.#told.isCommon(requester, quota, now);
    this.#credential = credential;
    this.#client = client;
    this.#limit = limit;
    this.#remaining = remaining;
    this.#resetIn = quota.resetIn;
    this.#notedAt = now;
    return !this.isApart(now);
  }

  /**
   * Whether more is left than can be of what was told last: a quota that all share grows by no more than it refills, and answers
   * overtake each other by some.
   */
  #isBeyond({ remaining, resetIn }: Quota, sentAt: Millis, now: Millis): boolean {
    const limit = this.#limit;
    const before = this.#resetIn;
    if (limit === undefined || before === undefined || resetIn === undefined) return false;
    const elapsed = now - this.#notedAt;
    // Resets are told in whole seconds: of a short window they say too little, and that of the next is later by more.
    if (before < SHORTEST || elapsed >= before || resetIn > before - elapsed + COARSE) return false;
    const refilled = ((limit - this.#remaining) * elapsed) / before;
    return remaining >= this.#remaining + refilled + overtakenBy(limit, sentAt >= this.#notedAt);
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
