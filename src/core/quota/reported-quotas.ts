import type { Requester } from './requester.ts';
import { areKnownDifferent } from './requester.ts';
import type { Millis } from '../scalars.ts';
import type { Quota } from '../hints/hints.ts';

/** The maximum number of clients kept. If it is exceeded, the address with the most clients loses its oldest. */
const MAX_CLIENTS = 16;
const REPORT_EXPIRY: Millis = 300_000;
/** A shared quota does not fall far within this time. */
const NO_FAR_FALL_WITHIN: Millis = 60_000;
/** A quota with a shorter reset may fall from full to empty at any time. */
const SHORT_RESET: Millis = 3000;

/** How far reports may be out of order, in requests and as a share of the limit: the larger one counts. */
const REORDERED_COUNT = 10;
const REORDERED_SHARE = 0.1;
/** The cap for small limits, of which ten requests may be all. */
const MAX_REORDERED_SHARE = 0.25;

/**
 * How much two reports may differ only by being out of order.
 * @param isInOrder the request was sent after the other response had arrived: only late counting in the upstream remains
 */
export function reorderingTolerance(limit: number | undefined, isInOrder = false): number {
  if (limit === undefined) return REORDERED_COUNT;
  const share = REORDERED_SHARE * limit;
  return isInOrder ? Math.max(1, share) : Math.min(Math.max(REORDERED_COUNT, share), MAX_REORDERED_SHARE * limit);
}

interface ReportedQuota {
  readonly client: number;
  readonly address: number | undefined;
  readonly credential: number | undefined;
  readonly limit: number | undefined;
  readonly remaining: number;
  readonly at: Millis;
}

/** Keeps the last quota reported to each client, to show whether clients share one. Bounded. */
export class ReportedQuotas {
  readonly #reports: ReportedQuota[] = [];

  /** Records a report. Returns whether another client was recently reported another limit. */
  onQuota({ client, address, credential }: Requester, { limit, remaining }: Quota, now: Millis): boolean {
    if (client === undefined) return false;
    this.#store({ client, address, credential, limit, remaining, at: now });
    for (const other of this.#reports) {
      if (now - other.at < REPORT_EXPIRY && other.client !== client && areKnownDifferent(other.limit, limit)) {
        return true;
      }
    }
    return false;
  }

  /**
   * Whether several clients share the quota: another address was reported about the same, and no client far more just
   * before. Other clients of the same address are no evidence, because one client may use many keys.
   */
  isShared(requester: Requester, { limit, remaining, resetIn = 0 }: Quota, now: Millis): boolean {
    let isShared = false;
    for (const other of this.#reports) {
      if (other.client === requester.client || other.limit !== limit || now - other.at > REPORT_EXPIRY) continue;
      if (areKnownDifferent(other.credential, requester.credential)) continue;
      const isFarAbove = other.remaining > remaining + reorderingTolerance(limit);
      if (isFarAbove && resetIn >= SHORT_RESET && now - other.at <= NO_FAR_FALL_WITHIN) return false;
      const isSimilar = Math.abs(other.remaining - remaining) <= reorderingTolerance(limit);
      isShared ||= areKnownDifferent(other.address, requester.address) && (isSimilar || resetIn < SHORT_RESET);
    }
    return isShared;
  }

  #store(report: ReportedQuota): void {
    for (let i = 0; i < this.#reports.length; i += 1) {
      if (this.#reports[i]?.client === report.client) {
        this.#reports[i] = report;
        return;
      }
    }
    if (this.#reports.length >= MAX_CLIENTS) this.#dropOne();
    this.#reports.push(report);
  }

  /** Drops the oldest report of the address with the most clients. */
  #dropOne(): void {
    let worst = 0;
    let highestCount = 0;
    for (let i = 0; i < this.#reports.length; i += 1) {
      let count = 0;
      for (const other of this.#reports) if (other.address === this.#reports[i]?.address) count += 1;
      const isNewer = (this.#reports[i]?.at ?? 0) >= (this.#reports[worst]?.at ?? 0);
      if (count < highestCount || (count === highestCount && isNewer)) continue;
      highestCount = count;
      worst = i;
    }
    this.#reports.splice(worst, 1);
  }
}
