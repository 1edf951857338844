import type { CalendarQuotaSettings } from '../../../src/core/quota/calendar/calendar-quota.ts';
import type { QuotaJournal, StoredQuota } from '../../../src/core/quota/calendar/quota-journal.ts';
import type { QuotaPeriod } from '../../../src/core/quota/calendar/quota-period.ts';

export const HOUR = 3_600_000;
export const DAY = 24 * HOUR;

export const UTC_DAY: QuotaPeriod = { kind: 'calendar', unit: 'day', timeZone: 'UTC', offsetAt: () => 0 };
export const UTC_HOUR: QuotaPeriod = { ...UTC_DAY, unit: 'hour' };

/** 10 requests a day, without a reserve or a pace. */
export function quotaSettings(settings: Partial<CalendarQuotaSettings> = {}): CalendarQuotaSettings {
  return { name: 'day', limit: 10, reserve: 0, pace: 'asNeeded', period: UTC_DAY, ...settings };
}

/** Keeps the counts of quotas in memory, and the number of times that they were stored. */
export class MemoryJournal implements QuotaJournal {
  readonly stored = new Map<string, StoredQuota>();
  writes = 0;
  readonly #onClose = new Map<string, () => void>();

  load(upstream: string, name: string): StoredQuota | undefined {
    return this.stored.get(`${upstream} ${name}`);
  }

  store(upstream: string, name: string, quota: StoredQuota): void {
    this.writes += 1;
    this.stored.set(`${upstream} ${name}`, quota);
  }

  /** Each call counts as one write. */
  storeTogether(write: () => void): void {
    const { writes } = this;
    write();
    this.writes = Math.min(this.writes, writes + 1);
  }

  onClose(upstream: string, name: string, write: () => void): void {
    this.#onClose.set(`${upstream} ${name}`, write);
  }

  forget(upstream: string, name: string): void {
    this.#onClose.delete(`${upstream} ${name}`);
  }

  close(): void {
    this.storeTogether(() => {
      for (const write of this.#onClose.values()) write();
    });
  }
}
