import { CalendarQuota, type CalendarQuotaSettings, type Instant, journalName } from '../calendar/calendar-quota.ts';
import type { QuotaJournal } from '../calendar/quota-journal.ts';
import { type EpochMillis, periodId } from '../calendar/quota-period.ts';

/** What a client has used of one of its quotas. */
export interface ClientQuotaView {
  readonly upstream: string;
  readonly name: string;
  /** Requests in a period. */
  readonly limit: number;
  /** Requests of the present period, and parts that processes have leased. */
  readonly used: number;
  /** When the next requests may be sent if it is used up. */
  readonly resetAt: EpochMillis;
}

/** The counts cannot be read or changed now. `why` is a sentence. */
export interface QuotasUnavailable {
  readonly kind: 'unavailable';
  readonly why: string;
}

/** The quotas of single clients, where they are counted. A client is given by its hash. */
export interface ClientQuotaInspection {
  /** Those that count requests of the client. */
  list(client: string): Promise<readonly ClientQuotaView[] | QuotasUnavailable>;
  /** Counts from 0 on. Returns them as they are then. If it is unavailable, some may have been reset. */
  reset(client: string): Promise<readonly ClientQuotaView[] | QuotasUnavailable>;
}

/** Calls `use` with each quota of a client that has a count. */
export type ForQuotasOfClient = (
  client: string,
  use: (upstream: string, quota: CalendarQuota) => ClientQuotaView,
) => readonly ClientQuotaView[];

/** The quotas that this process counts. */
export class CountedClientQuotas implements ClientQuotaInspection {
  readonly #forClient: ForQuotasOfClient;
  readonly #instant: () => Instant;

  constructor(forClient: ForQuotasOfClient, instant: () => Instant) {
    this.#forClient = forClient;
    this.#instant = instant;
  }

  list(client: string): Promise<readonly ClientQuotaView[]> {
    const instant = this.#instant();
    return Promise.resolve(this.#forClient(client, (upstream, quota) => toView(upstream, quota, instant)));
  }

  reset(client: string): Promise<readonly ClientQuotaView[]> {
    const instant = this.#instant();
    const views = this.#forClient(client, (upstream, quota) => {
      quota.reset(instant);
      return toView(upstream, quota, instant);
    });
    return Promise.resolve(views);
  }
}

function toView(upstream: string, quota: CalendarQuota, instant: Instant): ClientQuotaView {
  const { name, limit } = quota.settings;
  return { upstream, name, limit, used: quota.used(instant), resetAt: quota.view(instant).resetAt };
}

/** Calls `use` with a quota of a client that is not in memory. Returns undefined if the journal has no count of it. */
export function useStoredQuota<T>(
  upstream: string,
  settings: CalendarQuotaSettings,
  journal: QuotaJournal | undefined,
  use: (quota: CalendarQuota) => T,
): T | undefined {
  if (journal?.load(upstream, journalName(settings))?.period !== periodId(settings.period)) return undefined;
  const quota = new CalendarQuota(upstream, settings, journal);
  try {
    return use(quota);
  } finally {
    quota.close();
  }
}
