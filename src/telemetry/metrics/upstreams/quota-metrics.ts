import type { QuotaView } from '../../../core/quota/calendar/calendar-quota.ts';
import type { MetricFamily, MetricSample } from '../exposition/metric-family.ts';
import type { GateSnapshot } from '../limit-metrics.ts';

/** The calendar quotas of upstreams, read at each scrape: in the process that counts them. */
export function defineQuotaMetrics(readSnapshot: () => GateSnapshot): MetricFamily[] {
  const perQuota = (value: (view: QuotaView) => number) => (): MetricSample[] =>
    (readSnapshot().view.quotas ?? []).map((view) => ({
      labels: { upstream: view.upstream, quota: view.name },
      value: value(view),
    }));
  return [
    {
      name: 'tidegate_quota_limit',
      help: 'Requests in a period of a configured quota.',
      type: 'gauge',
      aggregation: 'max',
      samples: perQuota(({ limit }) => limit),
    },
    {
      name: 'tidegate_quota_remaining',
      help: 'Requests of a configured quota that may still be sent in this period, the reserve included.',
      type: 'gauge',
      aggregation: 'min',
      samples: perQuota(({ remaining }) => remaining),
    },
    {
      name: 'tidegate_quota_exhausted_at_timestamp_seconds',
      help: 'When all of a configured quota but its reserve was or will be used up at the recent rate, in seconds since the epoch; +Inf if not before its reset.',
      type: 'gauge',
      aggregation: 'min',
      samples: perQuota(({ exhaustedAt }) => exhaustedAt / 1000),
    },
  ];
}
