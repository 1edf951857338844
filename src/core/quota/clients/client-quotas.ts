import type { Millis } from '../../scalars.ts';
import type { Instant } from '../calendar/calendar-quota.ts';
import type { QuotaGroup, QuotaSubject } from '../calendar/quota-group.ts';
import type { EpochMillis } from '../calendar/quota-period.ts';
import { type SpentQuota, toSpentQuota } from '../calendar/spent-quota.ts';
import type { UpstreamQuota } from '../calendar/upstream-quota.ts';

/** Of what a client may send, as a refusal names it. */
export interface SpentClientQuota extends SpentQuota {
  readonly subject: Exclude<QuotaSubject, 'upstream'>;
}

/**
 * The quotas that count the requests of one client at one upstream: those of its class, and its own. They never pace requests, and no
 * request waits for their reset.
 */
export class ClientQuotas {
  readonly #groups: readonly QuotaGroup[];
  readonly #wallTimeAt: (now: Millis) => EpochMillis;

  /** @param groups of its class, and its own */
  constructor(groups: readonly QuotaGroup[], wallTimeAt: (now: Millis) => EpochMillis) {
    this.#groups = groups;
    this.#wallTimeAt = wallTimeAt;
  }

  /** The quota that is used up for the longest time; undefined if none is. */
  findSpent(now: Millis): SpentClientQuota | undefined {
    const instant = this.#instant(now);
    let longest: SpentClientQuota | undefined;
    for (const { subject, quotas } of this.#groups) {
      if (subject === 'upstream') continue;
      for (const quota of quotas) {
        const untilReset = quota.untilReset(false, instant);
        if (untilReset > (longest?.untilReset ?? 0)) {
          longest = { ...toSpentQuota(quota, untilReset, instant), subject };
        }
      }
    }
    return longest;
  }

  /** Returns a quota whose part was requested and has not come; undefined if each has a part, or is used up. Requests those it lacks. */
  findAwaited(now: Millis): UpstreamQuota | undefined {
    const instant = this.#instant(now);
    let awaited: UpstreamQuota | undefined;
    for (const quota of this.#quotas) if (isAwaited(quota, instant)) awaited ??= quota;
    return awaited;
  }

  /** When a client that was refused should return: at the reset, or soon if the rest of a quota is only reserved. */
  returnDelay(now: Millis): Millis {
    const instant = this.#instant(now);
    return Math.max(0, ...this.#quotas.map((quota) => quota.returnDelay(false, instant)));
  }

  /** Returns the quotas to be released: a reload may change them. */
  reserve(now: Millis): readonly UpstreamQuota[] {
    const instant = this.#instant(now);
    const quotas = this.#quotas;
    for (const quota of quotas) quota.reserve(false, now, instant);
    return quotas;
  }

  /** Returns the quotas that count the request. */
  onSent(now: Millis): readonly UpstreamQuota[] {
    const instant = this.#instant(now);
    const quotas = this.#quotas;
    for (const quota of quotas) quota.onSent(instant);
    return quotas;
  }

  /** @param counted what `onSent` returned at `sentAt` */
  giveBack(counted: readonly UpstreamQuota[], sentAt: Millis): void {
    const sent = this.#instant(sentAt);
    for (const quota of counted) quota.giveBack(sent);
  }

  get #quotas(): readonly UpstreamQuota[] {
    return this.#groups.flatMap(({ quotas }) => quotas);
  }

  #instant(now: Millis): Instant {
    return { now, at: this.#wallTimeAt(now) };
  }
}

function isAwaited(quota: UpstreamQuota, instant: Instant): boolean {
  return quota.delay(false, instant) === Number.POSITIVE_INFINITY;
}
