import type { AccountResult } from '../../../core/accounts/record-account-outcome.ts';
import type { AccountView, GateView } from '../../../core/events/gate-views.ts';
import type { MetricFamily, MetricSample } from '../exposition/metric-family.ts';

const RESULTS: readonly AccountResult[] = ['accepted', 'throttled', 'rejected', 'failed'];

/** Metrics of accounts. Their names come from the configuration, which bounds the number of series. */
export class AccountMetrics {
  /** By upstream, account and result. */
  readonly #results = new Map<string, number>();

  countResult(upstream: string, account: string, result: AccountResult): void {
    const key = seriesKey(upstream, account, result);
    this.#results.set(key, (this.#results.get(key) ?? 0) + 1);
  }

  /** @param readView returns the same view throughout one scrape */
  families(readView: () => GateView): MetricFamily[] {
    const perAccount = (value: (account: AccountView) => number) => (): MetricSample[] =>
      (readView().accounts ?? []).map((each) => ({
        labels: { upstream: each.upstream, account: each.account },
        value: value(each),
      }));
    return [
      {
        name: 'tidegate_account_requests_total',
        help: 'Attempts by the account that they were sent with: accepted, throttled, rejected (the upstream does not accept the credential), failed (no response, or 502 to 504).',
        type: 'counter',
        samples: () =>
          (readView().accounts ?? []).flatMap(({ upstream, account }) =>
            RESULTS.map((result) => ({
              labels: { upstream, account, result },
              value: this.#results.get(seriesKey(upstream, account, result)) ?? 0,
            })),
          ),
      },
      {
        name: 'tidegate_account_quarantined',
        help: '1 while the account gets only probes of some clients, because the upstream rejects its credential for them. Alert on this.',
        type: 'gauge',
        aggregation: 'max',
        samples: perAccount(({ isQuarantined }) => (isQuarantined ? 1 : 0)),
      },
      {
        name: 'tidegate_account_rate_requests_per_second',
        help: 'Rate in force of the limit of an account; +Inf while there is no limit.',
        type: 'gauge',
        aggregation: 'max',
        samples: perAccount(({ rate }) => rate),
      },
    ];
  }
}

function seriesKey(upstream: string, account: string, result: AccountResult): string {
  return `${upstream}\0${account}\0${result}`;
}
