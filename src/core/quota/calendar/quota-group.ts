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

  /** Keeps the counts of quotas whose name and period stay the same. */
  reconfigure(settings: readonly CalendarQuotaSettings[]): void {
    const before = this.#quotas;
    this.#quotas = settings.map((each) => {
      const known = before.find(({ settings: { name, period } }) => {
        return name === each.name && periodId(period) === periodId(each.period);
      });
      known?.reconfigure(each);
      return known ?? this.#make(each);
    });
    for (const quota of before) if (!this.#quotas.includes(quota)) quota.close();
  }

  /** The quotas are no longer used, except by requests that have them already. */
  close(): void {
    for (const quota of this.#quotas) quota.close();
  }
}
