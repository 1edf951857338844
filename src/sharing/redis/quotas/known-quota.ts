import type { CalendarQuotaSettings, QuotaView } from '../../../core/quota/calendar/calendar-quota.ts';
import { QuotaForecast } from '../../../core/quota/calendar/quota-forecast.ts';
import type { EpochMillis, QuotaPeriod } from '../../../core/quota/calendar/quota-period.ts';
import type { Millis } from '../../../core/scalars.ts';
import type { QuotaReturn, QuotaTerms } from '../../quotas/quota-protocol.ts';
import type { QuotaReply } from './quota-reply.ts';

/** How long Redis keeps the counts beyond the end of the window, or twice the length of a rolling period, after the last call. */
export const KEPT_AFTER: Millis = 172_800_000;
/** The clocks here and in Redis may run differently. */
const EXPIRY_MARGIN: Millis = 3_600_000;
const NOTHING = { everGranted: 0, used: 0, since: 0, resetAt: 0 };

/** What a process knows of a quota that Redis counts. */
export class KnownQuota {
  /** The counts of the last reply: if Redis loses them, they are restored. */
  last = NOTHING;
  /** Until then, Redis keeps them, in its own time. */
  #keptUntil: EpochMillis = 0;
  readonly #period: QuotaPeriod;
  readonly #wallClock: () => EpochMillis;
  readonly #forecast: QuotaForecast;
  /** The time of Redis, less that of the local clock. */
  #offset: Millis | undefined = undefined;
  #exhaustedAt: EpochMillis | undefined = undefined;
  #lateReturns: QuotaReturn[] = [];

  constructor(period: QuotaPeriod, wallClock: () => EpochMillis) {
    this.#period = period;
    this.#forecast = new QuotaForecast(period);
    this.#wallClock = wallClock;
  }

  /** The time of Redis; before its first reply, that of the wall clock. */
  timeAt(now: Millis): EpochMillis {
    return this.#offset === undefined ? this.#wallClock() : now + this.#offset;
  }

  setTime(time: EpochMillis, now: Millis): void {
    this.#offset = time - now;
  }

  onReply(reply: QuotaReply, upstream: string, settings: CalendarQuotaSettings, now: Millis): QuotaTerms {
    const { time, terms } = reply;
    this.setTime(time, now);
    const isSame = settings.period.kind === 'rolling' || terms.since === this.last.since;
    // What other processes lease and return in the same second does not count twice.
    const added = reply.used - (isSame ? this.last.used : 0);
    if (added > 0 && this.last.everGranted > 0) this.#forecast.onRequests(added, now);
    this.#note(reply);
    return { ...terms, view: this.#view(reply, upstream, settings, now) };
  }

  /** As `last`; nothing once Redis has forgotten the counts because nobody has called: nothing is lost then. */
  lastUnexpired(now: Millis): KnownQuota['last'] {
    return this.timeAt(now) < this.#keptUntil ? this.last : NOTHING;
  }

  /** A reply that came too late: what it grants is returned. */
  onLate(reply: QuotaReply): void {
    const { granted, grantedReserve, since } = reply.terms;
    if (granted + grantedReserve > 0) this.#lateReturns.push({ since, count: granted + grantedReserve });
    this.#note(reply);
  }

  /** They have not reached Redis. */
  keepReturns(returns: readonly QuotaReturn[]): void {
    this.#lateReturns.push(...returns);
  }

  takeLateReturns(): QuotaReturn[] {
    const returns = this.#lateReturns;
    this.#lateReturns = [];
    return returns;
  }

  #note({ time, everGranted, used, resetAt, terms: { since, validFor } }: QuotaReply): void {
    const length = this.#period.kind === 'rolling' ? 2 * this.#period.length : validFor;
    // A reply that came too late may be older than the last one. Once Redis has forgotten the counts, they begin anew.
    const hasExpired = time >= this.#keptUntil;
    const isNewer = everGranted >= this.last.everGranted && resetAt >= this.last.resetAt;
    if (hasExpired || isNewer) this.last = { everGranted, used, since, resetAt };
    this.#keptUntil = time + length + KEPT_AFTER - EXPIRY_MARGIN;
  }

  #view(reply: QuotaReply, upstream: string, settings: CalendarQuotaSettings, now: Millis): QuotaView {
    const { time: at, used, untilNext } = reply;
    const { name, limit, reserve, period } = settings;
    const resetAt = at + untilNext;
    const left = limit - reserve - used;
    this.#exhaustedAt = left > 0 ? undefined : (this.#exhaustedAt ?? at);
    const end = period.kind === 'rolling' ? undefined : resetAt;
    const exhaustedAt = this.#exhaustedAt ?? this.#forecast.exhaustedAt(settings, left, end, { now, at });
    return { upstream, name, limit, reserve, remaining: Math.max(0, limit - used), resetAt, exhaustedAt };
  }
}
