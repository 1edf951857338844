import type { Millis, PerSecond } from '../../scalars.ts';
import type { Limit } from '../../limits/limit.ts';
import { CalendarQuota, type CalendarQuotaSettings, type Instant, type QuotaView } from './calendar-quota.ts';
import type { QuotaJournal } from './quota-journal.ts';
import { QuotaGroup } from './quota-group.ts';
import type { EpochMillis } from './quota-period.ts';
import { type SpentQuota, toSpentQuota } from './spent-quota.ts';
import type { UpstreamQuota } from './upstream-quota.ts';

export interface UpstreamQuotasParts {
  /** The wall clock at a time of the gate's clock, as it is now: later, somebody may set it. */
  readonly wallTimeAt: (now: Millis) => EpochMillis;
  /** Undefined if the counts end with the process. */
  readonly journal?: QuotaJournal | undefined;
  /** Makes a quota that is counted elsewhere; absent if this process counts them. */
  readonly makeQuota?: ((upstream: string, settings: CalendarQuotaSettings) => UpstreamQuota) | undefined;
  /** How long a request waits for its part at least, whatever `maxWait` is: the time that a response of the count takes; 0 when absent. */
  readonly leaseWait?: Millis | undefined;
  /** Returns the maximum number of clients whose quotas are in memory, at each upstream; `MAX_CLIENTS` when absent. A reload may change it. */
  readonly maxClients?: (() => number) | undefined;
}

/** The part of a ticket that a quota depends on. */
export interface QuotaRequest {
  /** The weight of the class of its client; a client without a class has 1. */
  readonly classWeight: number;
}

/** Whether a request may use the reserves: the weight of its class is above that of clients without one. */
export function hasPriority({ classWeight }: QuotaRequest): boolean {
  return classWeight > 1;
}

/** Makes the quotas of an upstream, where they are counted. */
export function makeQuotas(
  upstream: string,
  { makeQuota, journal }: Pick<UpstreamQuotasParts, 'makeQuota' | 'journal'>,
): (settings: CalendarQuotaSettings) => UpstreamQuota {
  return (settings) => makeQuota?.(upstream, settings) ?? new CalendarQuota(upstream, settings, journal);
}

/** All calendar quotas of one upstream. A request needs a part of each. */
export class UpstreamQuotas {
  readonly #parts: UpstreamQuotasParts;
  readonly #group: QuotaGroup;
  /** Limits at which requests wait for a part that was requested. */
  readonly #awaiting = new Set<Limit>();

  constructor(upstream: string, settings: readonly CalendarQuotaSettings[], parts: UpstreamQuotasParts) {
    this.#parts = parts;
    this.#group = new QuotaGroup('upstream', settings, makeQuotas(upstream, parts));
  }

  /** Keeps the counts of quotas whose name and period stay the same. */
  reconfigure(settings: readonly CalendarQuotaSettings[]): void {
    this.#group.reconfigure(settings);
  }

  get #quotas(): readonly UpstreamQuota[] {
    return this.#group.quotas;
  }

  /** See `UpstreamQuotasParts.leaseWait`. */
  get leaseWait(): Millis {
    return this.#parts.leaseWait ?? 0;
  }

  /** Requests wait at this limit: it has to be served once a part that is requested has come. */
  onWaiting(limit: Limit): void {
    if (this.#quotas.some(({ isAwaited }) => isAwaited)) this.#awaiting.add(limit);
  }

  /** Returns the limits to be served now that parts of a quota have come, or were denied: none if it is another's. */
  takeAwaiting(supplied: UpstreamQuota): Limit[] {
    if (!this.#quotas.includes(supplied)) return [];
    const limits = [...this.#awaiting];
    this.#awaiting.clear();
    return limits;
  }

  /** Whether requests of the same queue may differ in what they may use. */
  get hasReserve(): boolean {
    return this.#quotas.some(({ settings }) => settings.reserve > 0);
  }

  /** Time until the request may be sent; 0 if it may be now. */
  delay(request: QuotaRequest, now: Millis): Millis {
    const instant = this.#instant(now);
    let longest = 0;
    for (const quota of this.#quotas) longest = Math.max(longest, quota.delay(hasPriority(request), instant));
    return longest;
  }

  /** See `UpstreamQuota.expectedDelay`. */
  expectedDelay(request: QuotaRequest, now: Millis): Millis {
    const instant = this.#instant(now);
    let longest = 0;
    for (const quota of this.#quotas) longest = Math.max(longest, quota.expectedDelay(hasPriority(request), instant));
    return longest;
  }

  /** The rate of an even pace; Infinity if there is none. */
  rate(request: QuotaRequest, now: Millis): PerSecond {
    const instant = this.#instant(now);
    let lowest = Number.POSITIVE_INFINITY;
    for (const quota of this.#quotas) lowest = Math.min(lowest, quota.rate(hasPriority(request), instant));
    return lowest;
  }

  /** The quota that is used up for the longest time; undefined if none is. */
  findSpent(request: QuotaRequest, now: Millis): SpentQuota | undefined {
    const instant = this.#instant(now);
    let spent: SpentQuota | undefined;
    for (const quota of this.#quotas) {
      const untilReset = quota.untilReset(hasPriority(request), instant);
      if (untilReset <= (spent?.untilReset ?? 0)) continue;
      spent = toSpentQuota(quota, untilReset, instant);
    }
    return spent;
  }

  /** Time until the request may be sent by the counts alone; 0 if it may be now. */
  untilReset(request: QuotaRequest, now: Millis): Millis {
    return this.findSpent(request, now)?.untilReset ?? 0;
  }

  /** When a client that was refused for a quota should return: at the reset, or soon if the rest of the quota is only reserved. */
  returnDelay(request: QuotaRequest, now: Millis): Millis {
    const instant = this.#instant(now);
    let longest = 0;
    for (const quota of this.#quotas) longest = Math.max(longest, quota.returnDelay(hasPriority(request), instant));
    return longest;
  }

  /** Returns the quotas to be released: a reload may change them. See `UpstreamQuota.reserve`. */
  reserve(request: QuotaRequest, due: Millis, now: Millis): readonly UpstreamQuota[] {
    const instant = this.#instant(now);
    for (const quota of this.#quotas) quota.reserve(hasPriority(request), due, instant);
    return this.#quotas;
  }

  /** Returns the quotas that count the attempt. */
  onSent(now: Millis): readonly UpstreamQuota[] {
    const instant = this.#instant(now);
    for (const quota of this.#quotas) quota.onSent(instant);
    return this.#quotas;
  }

  /** @param counted what `onSent` returned at `sentAt` */
  giveBack(counted: readonly UpstreamQuota[], sentAt: Millis): void {
    const sent = this.#instant(sentAt);
    for (const quota of counted) quota.giveBack(sent);
  }

  views(now: Millis): QuotaView[] {
    const instant = this.#instant(now);
    return this.#quotas.flatMap((quota) => quota.view(instant) ?? []);
  }

  #instant(now: Millis): Instant {
    return { now, at: this.#parts.wallTimeAt(now) };
  }
}
