import type { CalendarQuotaSettings } from './calendar-quota.ts';
import { periodId } from './quota-period.ts';
import type { UpstreamQuota } from './upstream-quota.ts';

/** Whose requests a quota counts: those of all clients, of a class of clients, or of a single client. */
export type QuotaSubject = 'upstream' | 'class' | 'client';

/** The quotas of one subject at an upstream. */
export class QuotaGroup {
  readonly subject: QuotaSubject;
  readonly #make: (settings: CalendarQuotaSettings) => UpstreamQuota;
  #quotas: readonly UpstreamQuota[] = [];

  constructor(
    subject: QuotaSubject,
    settings: readonly CalendarQuotaSettings[],
    make: (settings: CalendarQuotaSettings) => UpstreamQuota,
  ) {
    this.subject = subject;
    this.#make = make;
    this.reconfigure(settings);
  }

  get quotas(): readonly UpstreamQuota[] {
    return this.#quotas;
  }

  /**
   * Keeps the counts of quotas whose name and period stay the same. Others are closed before new ones are made: one with the same name
   * takes over the place in the journal.
   */
  reconfigure(settings: readonly CalendarQuotaSettings[]): void {
    const kept = new Map<CalendarQuotaSettings, UpstreamQuota>();
    for (const quota of this.#quotas) {
      const next = settings.find((each) => isSameQuota(each, quota.settings));
      if (next === undefined) quota.close();
      else kept.set(next, quota);
    }
    this.#quotas = settings.map((each) => {
      const known = kept.get(each);
      known?.reconfigure(each);
      return known ?? this.#make(each);
    });
  }

  /** The quotas are no longer used, except by requests that have them already. */
  close(): void {
    for (const quota of this.#quotas) quota.close();
  }
}

function isSameQuota(a: CalendarQuotaSettings, b: CalendarQuotaSettings): boolean {
  return a.name === b.name && periodId(a.period) === periodId(b.period);
}
