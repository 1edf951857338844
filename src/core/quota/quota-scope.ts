import type { QuotaOwner, Requester } from './requester.ts';
import { areKnownDifferent } from './requester.ts';
import { reorderingTolerance, ReportedQuotas } from './reported-quotas.ts';
import type { Millis } from '../scalars.ts';
import type { Quota } from '../hints/hints.ts';

/** A credential with a response within this time is in use. */
const CREDENTIAL_IN_USE: Millis = 300_000;
/** How long requesters are assumed to have quotas of their own after the last evidence of it. */
const PER_REQUESTER_FOR: Millis = 600_000;

const RESET_ROUNDING: Millis = 1000;
const MIN_COMPARABLE_RESET: Millis = 3000;

/**
 * Detects whether the quota reported at one limit is shared by all, or each requester has its own. The upstream does not
 * say. The evidence for separate quotas: different credentials in use, different limits reported to clients, or more
 * remaining for one client than can be left of what was reported to another.
 */
export class QuotaScopeDetector {
  /** The last report. */
  #credential: number | undefined;
  #client: number | undefined;
  #limit: number | undefined;
  #remaining = 0;
  #resetIn: Millis | undefined;
  #notedAt: Millis = Number.NEGATIVE_INFINITY;
  #isCommon = false;
  #perRequesterUntil: Millis = Number.NEGATIVE_INFINITY;
  readonly #reported = new ReportedQuotas();

  /**
   * Records a report. Returns whether its quota is assumed to cover more than its requester.
   * @param sentAt when the request of the report was sent
   */
  onQuota(requester: Requester, quota: Quota, sentAt: Millis, now: Millis): boolean {
    const { credential, client } = requester;
    const { limit, remaining } = quota;
    const isOther = areKnownDifferent(this.#credential, credential);
    const isOtherInUse = isOther && now - this.#notedAt < CREDENTIAL_IN_USE;
    const exceedsShared =
      limit === this.#limit && areKnownDifferent(this.#client, client) && this.#exceedsSharedQuota(quota, sentAt, now);
    if (this.#reported.onQuota(requester, quota, now) || isOtherInUse || exceedsShared) {
      this.#perRequesterUntil = now + PER_REQUESTER_FOR;
    }
    this.#isCommon = this.#reported.isShared(requester, quota, now);
    this.#credential = credential;
    this.#client = client;
    this.#limit = limit;
    this.#remaining = remaining;
    this.#resetIn = quota.resetIn;
    this.#notedAt = now;
    return !this.isPerRequester(now);
  }

  /**
   * Whether more remains than can be left of the last report: a shared quota grows by its refill only, and reports may
   * arrive slightly out of order.
   */
  #exceedsSharedQuota({ remaining, resetIn }: Quota, sentAt: Millis, now: Millis): boolean {
    const limit = this.#limit;
    const before = this.#resetIn;
    if (limit === undefined || before === undefined || resetIn === undefined) return false;
    const elapsed = now - this.#notedAt;
    // Resets are in whole seconds: too coarse for short windows. A much later reset belongs to the next window.
    if (before < MIN_COMPARABLE_RESET || elapsed >= before || resetIn > before - elapsed + RESET_ROUNDING) return false;
    const refilled = ((limit - this.#remaining) * elapsed) / before;
    return remaining >= this.#remaining + refilled + reorderingTolerance(limit, sentAt >= this.#notedAt);
  }

  /** Continues with what another process knew. */
  resume({ credential, client, isCommon }: QuotaOwner, now: Millis): void {
    this.#credential = credential;
    this.#client = client;
    this.#isCommon = isCommon;
    this.#notedAt = now;
  }

  /** Requesters have quotas of their own: a report covers its requester only. */
  markPerRequester(now: Millis): void {
    this.#perRequesterUntil = now + PER_REQUESTER_FOR;
  }

  isPerRequester(now: Millis): boolean {
    return now < this.#perRequesterUntil;
  }

  /** Whether the last report covers this requester: as `quotaCovers`, without allocating an owner. */
  appliesTo({ credential, client }: Requester): boolean {
    if (areKnownDifferent(this.#credential, credential)) return false;
    return this.#isCommon || !areKnownDifferent(this.#client, client);
  }

  get credential(): number | undefined {
    return this.#credential;
  }

  get client(): number | undefined {
    return this.#client;
  }

  /** Whether several clients were reported the same quota. */
  get isCommon(): boolean {
    return this.#isCommon;
  }
}
