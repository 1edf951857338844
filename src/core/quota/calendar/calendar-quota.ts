import { Pacer } from '../../rate/pacer.ts';
import type { Millis, PerSecond } from '../../scalars.ts';
import type { QuotaWindow } from './calendar-window.ts';
import { makeQuotaCounts, type QuotaCounts } from './quota-counts.ts';
import { QuotaForecast } from './quota-forecast.ts';
import type { QuotaJournal } from './quota-journal.ts';
import { type EpochMillis, nominalLength, periodId, type QuotaPeriod } from './quota-period.ts';
import type { UpstreamQuota } from './upstream-quota.ts';

export interface CalendarQuotaSettings {
  /** Unique among the quotas of the upstream, except that the quotas of single clients have one name. */
  readonly name: string;
  /** The client whose requests it counts; absent if it counts those of several. */
  readonly key?: string | undefined;
  /** Requests in a period. */
  readonly limit: number;
  /** Of `limit`, what only requests with priority may use: fewer than `limit`. */
  readonly reserve: number;
  /** `even`: what is left is spread over the rest of the period. */
  readonly pace: 'even' | 'asNeeded';
  readonly period: QuotaPeriod;
}

/** One time on two clocks: the gate's, which is monotonic, and the wall clock's. */
export interface Instant {
  readonly now: Millis;
  readonly at: EpochMillis;
}

export interface QuotaView {
  readonly upstream: string;
  readonly name: string;
  readonly limit: number;
  readonly reserve: number;
  /** Requests that may still be sent in this period, the reserve included. */
  readonly remaining: number;
  /** When the next requests may be sent if it is used up: the end of the period, or when the oldest no longer count. */
  readonly resetAt: EpochMillis;
  /** When all but the reserve was or will be used up at the recent rate; Infinity if that is not before the end of the period. */
  readonly exhaustedAt: EpochMillis;
}

/** A process that requested parts in this time shares an even pace. */
export const SHARER_WINDOW: Millis = 2000;
/** After a reset, processes that hold parts call within a second: until then, those without one call at this interval. */
export const CARRIED_RETRY: Millis = 200;
/** A process that holds parts calls each second. Once it has not for this time, nothing is kept for it after a reset. */
export const SILENT_AFTER: Millis = 5000;
/** What is written ahead to the journal, as a share of the limit: after a kill, at most that counts although it was not sent. */
const WRITE_AHEAD_SHARE = 0.001;
/** The same for a single client: its quota is small, and each write may sync the disk. */
const WRITE_AHEAD_SHARE_OF_CLIENT = 0.02;
/** After this time, most admitted requests have been sent, or have failed to connect. */
const RESERVED_FOR: Millis = 1000;

/**
 * A quota of requests in a period of the calendar, such as the operator of an upstream has published. A request reserves its part when
 * it is admitted, and counts when it is sent.
 */
export class CalendarQuota implements UpstreamQuota {
  readonly isAwaited = false;
  readonly isLost = false;
  readonly #upstream: string;
  #journal: QuotaJournal | undefined;
  readonly #counts: QuotaCounts;
  readonly #forecast: QuotaForecast;
  /** Of all requests, at the pace of the whole limit. */
  readonly #pacer = new Pacer();
  /** Of requests without priority alone: those with it would otherwise take each of their turns. */
  readonly #unreservedPacer = new Pacer();
  #settings: CalendarQuotaSettings;
  /** Admitted and not yet sent. */
  #reserved = 0;
  /** Set while all but the reserve is used. */
  #exhaustedAt: EpochMillis | undefined = undefined;
  /** The journal has the exact counts. */
  #isStored = true;
  /** How many more requests the journal already counts, in the part of the period that begins at `#aheadIn`. */
  #ahead = 0;
  #aheadIn: EpochMillis = Number.NaN;
  #resetAt: EpochMillis = Number.NEGATIVE_INFINITY;

  constructor(upstream: string, settings: CalendarQuotaSettings, journal?: QuotaJournal) {
    this.#upstream = upstream;
    this.#settings = settings;
    this.#journal = journal;
    this.#counts = makeQuotaCounts(settings.period);
    this.#forecast = new QuotaForecast(settings.period);
    const stored = journal?.load(upstream, journalName(settings));
    const isSamePeriod = stored?.period === periodId(settings.period);
    if (isSamePeriod) this.#counts.restore(stored.counts);
    journal?.onClose(upstream, journalName(settings), () => this.#storeExact());
  }

  get settings(): CalendarQuotaSettings {
    return this.#settings;
  }

  /** When an operator last reset it; −Infinity if none did since the start. */
  get resetAt(): EpochMillis {
    return this.#resetAt;
  }

  reconfigure(settings: CalendarQuotaSettings): void {
    this.#settings = settings;
  }

  /** An operator begins the count anew. Requests that are admitted and not sent yet count; nothing of earlier ones is given back. */
  reset({ at }: Instant): void {
    this.#counts.reset(at);
    this.#resetAt = at;
    this.#exhaustedAt = undefined;
    this.#aheadIn = Number.NaN;
    this.#isStored = false;
    this.#storeExact();
  }

  untilReset(hasPriority: boolean, { at }: Instant): Millis {
    this.#counts.advance(at);
    const unreserved = this.#limitFor(hasPriority) - this.#reserved;
    if (this.#counts.used < unreserved) return 0;
    // Reserved parts count as long as a request that is sent now.
    const end = this.#counts.end ?? at + nominalLength(this.#settings.period);
    return Math.max(0, (unreserved < 1 ? end : this.#counts.belowAt(unreserved)) - at);
  }

  returnDelay(hasPriority: boolean, instant: Instant): Millis {
    const untilReset = this.untilReset(hasPriority, instant);
    return this.#counts.used < this.#limitFor(hasPriority) ? Math.min(untilReset, RESERVED_FOR) : untilReset;
  }

  delay(hasPriority: boolean, instant: Instant): Millis {
    const untilReset = this.untilReset(hasPriority, instant);
    if (untilReset > 0 || this.#settings.pace === 'asNeeded') return untilReset;
    const delay = this.#pacer.delay(instant.now, this.rate(true, instant));
    return hasPriority ? delay : Math.max(delay, this.#unreservedPacer.delay(instant.now, this.rate(false, instant)));
  }

  expectedDelay(hasPriority: boolean, instant: Instant): Millis {
    return this.delay(hasPriority, instant);
  }

  rate(hasPriority: boolean, { at }: Instant): PerSecond {
    const { pace, period, limit } = this.#settings;
    if (pace === 'asNeeded') return Number.POSITIVE_INFINITY;
    if (period.kind === 'rolling') return (1000 * limit) / period.length;
    this.#counts.advance(at);
    const left = this.#limitFor(hasPriority) - this.#counts.used - this.#reserved;
    const timeLeft = (this.#counts.end ?? at) - at;
    return left <= 0 || timeLeft <= 0 ? Number.POSITIVE_INFINITY : (1000 * left) / timeLeft;
  }

  reserve(hasPriority: boolean, due: Millis, instant: Instant): void {
    const [rate, unreservedRate] = [this.rate(true, instant), this.rate(false, instant)];
    if (rate < Number.POSITIVE_INFINITY) this.#pacer.take(due, rate);
    if (!hasPriority && unreservedRate < Number.POSITIVE_INFINITY) this.#unreservedPacer.take(due, unreservedRate);
    this.#reserved += 1;
  }

  release(): void {
    this.#reserved -= 1;
  }

  /** A request is being sent: it counts from now on, also in the journal. */
  onSent({ now, at }: Instant): void {
    const part = this.#counts.add(at);
    this.#isStored = false;
    this.#forecast.onRequests(1, now);
    if (this.#counts.used >= this.#limitFor(false)) this.#exhaustedAt ??= at;
    if (this.#journal === undefined) return;
    if (part !== this.#aheadIn) this.#ahead = 0;
    this.#aheadIn = part;
    if (this.#ahead === 0) {
      this.#ahead = this.#writeAhead();
      this.#store(this.#ahead - 1);
    }
    this.#ahead -= 1;
  }

  giveBack({ at: sentAt }: Pick<Instant, 'at'>): void {
    if (!this.#counts.remove(sentAt)) return;
    this.#isStored = false;
    if (sentAt >= this.#aheadIn) this.#ahead += 1;
    if (this.#counts.used < this.#limitFor(false)) this.#exhaustedAt = undefined;
  }

  close(): void {
    this.#storeExact();
    this.#journal?.forget(this.#upstream, journalName(this.#settings));
    this.#journal = undefined;
  }

  /** The part of the period to which a request counts that is sent now: what is leased of it is valid until its end. */
  part({ at }: Instant): QuotaWindow {
    this.#counts.advance(at);
    return this.#counts.part(at);
  }

  /** Requests of the present period. */
  used({ at }: Pick<Instant, 'at'>): number {
    this.#counts.advance(at);
    return this.#counts.used;
  }

  view({ now, at }: Instant): QuotaView {
    const { name, limit, reserve } = this.#settings;
    this.#counts.advance(at);
    const remaining = Math.max(0, limit - this.#counts.used);
    const resetAt = this.#counts.end ?? Math.max(at, this.#counts.belowAt(Math.max(1, this.#counts.used)));
    const left = this.#limitFor(false) - this.#counts.used;
    this.#exhaustedAt = left > 0 ? undefined : (this.#exhaustedAt ?? at); // after a restart, the time is not known
    const exhaustedAt =
      this.#exhaustedAt ?? this.#forecast.exhaustedAt(this.#settings, left, this.#counts.end, { now, at });
    return { upstream: this.#upstream, name, limit, reserve, remaining, resetAt, exhaustedAt };
  }

  #limitFor(hasPriority: boolean): number {
    const { limit, reserve } = this.#settings;
    return hasPriority ? limit : limit - reserve;
  }

  /** At least what a second of an even pace needs, so that the journal is written at most once a second or so. */
  #writeAhead(): number {
    const { limit, period, key } = this.#settings;
    const share = key === undefined ? WRITE_AHEAD_SHARE : WRITE_AHEAD_SHARE_OF_CLIENT;
    return Math.ceil(limit * Math.max(share, 1000 / nominalLength(period)));
  }

  #storeExact(): void {
    if (!this.#isStored) this.#store(0);
    this.#isStored = true;
  }

  /** @param ahead requests to count in addition, in the present part of the period */
  #store(ahead: number): void {
    const { period } = this.#settings;
    const counts = this.#counts.stored();
    const stored = counts.map(([start, count]) => [start, count + (start === this.#aheadIn ? ahead : 0)] as const);
    this.#journal?.store(this.#upstream, journalName(this.#settings), { period: periodId(period), counts: stored });
  }
}

/** The name of a quota in the journal. Names of quotas have no spaces. */
export function journalName({ name, key }: Pick<CalendarQuotaSettings, 'name' | 'key'>): string {
  return key === undefined ? name : `${name} ${key}`;
}
