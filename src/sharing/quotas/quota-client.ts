import type { Limit } from '../../core/limits/limit.ts';
import type { CalendarQuotaSettings } from '../../core/quota/calendar/calendar-quota.ts';
import type { Clock, Millis } from '../../core/scalars.ts';
import type { StoreBinding } from '../protocol/store-binding.ts';
import { type CallKeeper, LeasedQuota, type LeasedQuotaParts } from './leased-quota.ts';

export interface QuotaClientParts extends Pick<LeasedQuotaParts, 'call' | 'schedule' | 'isKeeperForgetful'> {
  readonly clock: Clock;
}

/** The quotas of which this process leases parts. */
export class QuotaClient {
  readonly #parts: QuotaClientParts;
  readonly #quotas = new Set<LeasedQuota>();
  #binding: StoreBinding | undefined = undefined;
  #calls = 0;
  #onIdle: (() => void) | undefined = undefined;

  constructor(parts: QuotaClientParts) {
    this.#parts = parts;
  }

  /** For the store. */
  readonly makeQuota = (upstream: string, settings: CalendarQuotaSettings): LeasedQuota => {
    const { clock, schedule, isKeeperForgetful } = this.#parts;
    const quota: LeasedQuota = new LeasedQuota(settings, {
      ...{ upstream, clock, schedule, isKeeperForgetful },
      call: this.#call,
      onSupplied: () => this.#onSupplied(upstream),
    });
    for (const each of this.#quotas) if (each.isClosed) this.#quotas.delete(each); // a reload has removed them
    this.#quotas.add(quota);
    return quota;
  };

  /** Connects the store and its gate. */
  bind(binding: StoreBinding): void {
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

  #onSupplied(upstream: string): void {
    if (this.#binding?.store.has(upstream) !== true) return;
    const { store, onTokensSupplied } = this.#binding;
    const limits: readonly Limit[] = store.upstream(upstream).quotas?.takeAwaiting() ?? [];
    const now: Millis = this.#parts.clock.now();
    for (const limit of limits) onTokensSupplied(limit, now);
  }
}
