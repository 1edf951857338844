import type { CalendarQuotaSettings } from '../../core/quota/calendar/calendar-quota.ts';
import type { UpstreamQuota } from '../../core/quota/calendar/upstream-quota.ts';
import type { Clock, Millis } from '../../core/scalars.ts';
import type { StoreBinding } from '../protocol/store-binding.ts';
import { LeasedQuota, type LeasedQuotaParts } from './leased-quota.ts';
import type { CallKeeper } from './quota-protocol.ts';

export interface QuotaClientParts extends Pick<LeasedQuotaParts, 'call' | 'schedule' | 'isKeeperForgetful'> {
  readonly clock: Clock;
}

/** What this needs from the store and the gate of its process. */
export interface QuotaBinding extends StoreBinding {
  /** A part has come, or was denied: requests that wait for this quota are to be decided. */
  readonly onQuotaSupplied: (quota: UpstreamQuota, now: Millis) => void;
}

const MIN_SWEPT = 16;

/** The quotas of which this process leases parts. */
export class QuotaClient {
  readonly #parts: QuotaClientParts;
  readonly #quotas = new Set<LeasedQuota>();
  /** At this number of quotas, those that were closed are removed. */
  #sweepAt = MIN_SWEPT;
  #binding: QuotaBinding | undefined = undefined;
  #calls = 0;
  #onIdle: (() => void) | undefined = undefined;

  constructor(parts: QuotaClientParts) {
    this.#parts = parts;
  }

  /** For the store. */
  readonly makeQuota = (upstream: string, settings: CalendarQuotaSettings): LeasedQuota => {
    const { clock, schedule } = this.#parts;
    // Those of single clients may be many: they call only while they are used.
    const isKeeperForgetful = this.#parts.isKeeperForgetful && settings.key === undefined;
    const quota: LeasedQuota = new LeasedQuota(settings, {
      ...{ upstream, clock, schedule, isKeeperForgetful },
      call: this.#call,
      onSupplied: () => this.#onSupplied(upstream, quota),
    });
    this.#quotas.add(quota);
    if (this.#quotas.size >= this.#sweepAt) this.#sweep();
    return quota;
  };

  /** A reload has closed some, or clients have made room for others. */
  #sweep(): void {
    for (const each of this.#quotas) if (each.isClosed) this.#quotas.delete(each);
    this.#sweepAt = Math.max(MIN_SWEPT, 2 * this.#quotas.size);
  }

  /** Connects the store and its gate. */
  bind(binding: QuotaBinding): void {
    this.#binding = binding;
  }

  /** Returns all that is in hand. */
  close(): void {
    for (const quota of this.#quotas) quota.close();
    this.#quotas.clear();
  }

  /** Calls back once no call is in progress. */
  whenIdle(onIdle: () => void): void {
    if (this.#calls === 0) onIdle();
    else this.#onIdle = onIdle;
  }

  readonly #call: CallKeeper = (call, onTerms, settings) => {
    this.#calls += 1;
    const onDone: typeof onTerms = (terms) => {
      onTerms(terms);
      this.#calls -= 1;
      if (this.#calls === 0) this.#onIdle?.();
    };
    this.#parts.call(call, onDone, settings);
  };

  #onSupplied(upstream: string, quota: LeasedQuota): void {
    if (this.#binding?.store.has(upstream) !== true) return;
    const { store, onTokensSupplied, onQuotaSupplied } = this.#binding;
    const now: Millis = this.#parts.clock.now();
    for (const limit of store.upstream(upstream).quotas?.takeAwaiting(quota) ?? []) onTokensSupplied(limit, now);
    onQuotaSupplied(quota, now);
  }
}
