import type { CalendarQuotaSettings } from '../../../core/quota/calendar/calendar-quota.ts';
import type {
  ClientQuotaInspection,
  ClientQuotaView,
  QuotasUnavailable,
} from '../../../core/quota/clients/client-quota-inspection.ts';
import type { RedisQuotas } from './redis-quotas.ts';

/** A quota of each client of a class, in the configuration. */
interface PerClientQuota {
  readonly upstream: string;
  readonly settings: CalendarQuotaSettings;
}

const UNAVAILABLE: QuotasUnavailable = {
  kind: 'unavailable',
  why: 'Redis counts the quotas of clients, and does not respond. Try again.',
};

/** The quotas of single clients that Redis counts. */
export class RedisClientQuotas implements ClientQuotaInspection {
  readonly #quotas: Pick<RedisQuotas, 'inspect'>;
  readonly #perClient: () => readonly PerClientQuota[];

  constructor(quotas: Pick<RedisQuotas, 'inspect'>, perClient: () => readonly PerClientQuota[]) {
    this.#quotas = quotas;
    this.#perClient = perClient;
  }

  list(client: string): Promise<readonly ClientQuotaView[] | QuotasUnavailable> {
    return this.#inspect('read', client);
  }

  reset(client: string): Promise<readonly ClientQuotaView[] | QuotasUnavailable> {
    return this.#inspect('reset', client);
  }

  async #inspect(mode: 'read' | 'reset', client: string): Promise<readonly ClientQuotaView[] | QuotasUnavailable> {
    const calls = this.#perClient().map(async ({ upstream, settings }) => {
      const reply = await this.#quotas.inspect(mode, upstream, { ...settings, key: client });
      if (reply === undefined) return UNAVAILABLE;
      if ('isUnknown' in reply) return [];
      const { time, used, untilNext } = reply;
      const { name, limit } = settings;
      return [{ upstream, name, limit, used, resetAt: time + untilNext }];
    });
    const views: ClientQuotaView[] = [];
    for (const result of await Promise.all(calls)) {
      if ('kind' in result) return result;
      views.push(...result);
    }
    return views;
  }
}
