import type { GateView } from '../../core/events/gate-views.ts';
import { LIMIT_STATES } from '../../core/limits/limit-state.ts';
import type { Millis } from '../../core/scalars.ts';
import { CLIENT_STATES } from './client-metrics.ts';
import type { WorkerAggregation, MetricFamily, MetricSample } from './exposition/metric-family.ts';
import type { LimitSummary } from './limit-summary.ts';

/** The state of the gate at one scrape. */
export interface GateSnapshot {
  readonly view: GateView;
  readonly limits: readonly LimitSummary[];
  /** Milliseconds of the epoch at the origin of the monotonic clock. */
  readonly clockOrigin: Millis;
}

/**
 * The metrics of the gate, read at each scrape.
 * @param readSnapshot returns the same snapshot throughout one scrape
 * @param limitAggregation how metrics of limits are merged over workers: `primary` where the primary keeps the limits
 */
export function defineLimitMetrics(
  readSnapshot: () => GateSnapshot,
  limitAggregation: WorkerAggregation,
): MetricFamily[] {
  const perLimit = (samples: (summary: LimitSummary, snapshot: GateSnapshot) => MetricSample[]) => () => {
    const snapshot = readSnapshot();
    return snapshot.limits.flatMap((summary) => samples(summary, snapshot));
  };

  return [
    {
      name: 'tidegate_retry_budget_available_ratio',
      help: 'Retry budget left, as a ratio of its burst.',
      type: 'gauge',
      aggregation: 'mean',
      samples: () => [...readSnapshot().view.budgets].map(([upstream, value]) => ({ labels: { upstream }, value })),
    },
    {
      name: 'tidegate_ratelimit_rate_requests_per_second',
      help: 'Rate in force; +Inf while there is no limit. Of several limits of one scope (one per client, for example), the lowest; limit: the name of a nested limit.',
      type: 'gauge',
      aggregation: limitAggregation,
      samples: perLimit(({ labels, lowestRate }) =>
        [...lowestRate].map(([scope, limit]) => ({ labels: { ...labels, scope }, value: limit.rate })),
      ),
    },
    {
      name: 'tidegate_ratelimit_ceiling_requests_per_second',
      help: 'Ceiling that the rate is restored to, of the limit whose rate is reported; +Inf where none is known.',
      type: 'gauge',
      aggregation: limitAggregation,
      samples: perLimit(({ labels, lowestRate }) =>
        [...lowestRate].map(([scope, limit]) => ({ labels: { ...labels, scope }, value: limit.ceiling })),
      ),
    },
    {
      name: 'tidegate_ratelimit_places',
      help: 'Learned concurrency limit; absent where the upstream does not limit concurrency.',
      type: 'gauge',
      aggregation: limitAggregation,
      samples: perLimit(({ labels, lowestRate }) =>
        [...lowestRate].flatMap(([scope, { concurrencyLimit }]) =>
          concurrencyLimit === undefined ? [] : [{ labels: { ...labels, scope }, value: concurrencyLimit }],
        ),
      ),
    },
    {
      name: 'tidegate_ratelimit_state',
      help: '1 if at least one limit of the upstream, or of this nested name, is in this state, else 0.',
      type: 'gauge',
      aggregation: limitAggregation,
      samples: perLimit(({ labels, states }) =>
        LIMIT_STATES.map((state) => ({ labels: { ...labels, state }, value: states.has(state) ? 1 : 0 })),
      ),
    },
    {
      name: 'tidegate_ratelimit_steered',
      help: '1 while an operator pins the rate of the upstream (pinned) or blocks it (blocked), else 0.',
      type: 'gauge',
      aggregation: limitAggregation,
      samples: perLimit(({ labels, isPinned, isOperatorBlocked }) =>
        labels.limit !== undefined
          ? []
          : [
              { labels: { ...labels, how: 'pinned' }, value: isPinned ? 1 : 0 },
              { labels: { ...labels, how: 'blocked' }, value: isOperatorBlocked ? 1 : 0 },
            ],
      ),
    },
    {
      name: 'tidegate_ratelimit_blocks',
      help: 'Blocked limits, by cause (rejections or errors) and by part: the whole upstream, or the requests that the failures had in common.',
      type: 'gauge',
      aggregation: limitAggregation,
      samples: perLimit(({ labels, blocks }) =>
        [...blocks].flatMap(([cause, parts]) =>
          [...parts].map(([part, value]) => ({ labels: { ...labels, cause, part }, value })),
        ),
      ),
    },
    {
      name: 'tidegate_upstream_blocked_until_timestamp_seconds',
      help: 'End of the block, in seconds of the epoch; of several limits the latest; 0 while none is blocked.',
      type: 'gauge',
      aggregation: limitAggregation,
      samples: perLimit(({ labels, blockedUntil }, { clockOrigin }) => [
        { labels, value: blockedUntil === undefined ? 0 : (clockOrigin + blockedUntil) / 1000 },
      ]),
    },
    {
      name: 'tidegate_upstream_quota_remaining_ratio',
      help: 'Share of the quota left, as the upstream reports it; of several limits the lowest; absent while it reports none.',
      type: 'gauge',
      aggregation: limitAggregation,
      samples: perLimit(({ labels, quotaLeft }) => (quotaLeft === undefined ? [] : [{ labels, value: quotaLeft }])),
    },
    {
      name: 'tidegate_queue_depth',
      help: 'Requests in the queue; in observe mode, requests that would be queued.',
      type: 'gauge',
      samples: perLimit(({ labels, queued }) => (labels.limit === undefined ? [{ labels, value: queued }] : [])),
    },
    {
      name: 'tidegate_clients_tracked',
      help: 'Tracked clients.',
      type: 'gauge',
      samples: () => [{ labels: {}, value: readSnapshot().view.clients.tracked }],
    },
    {
      name: 'tidegate_clients_by_state',
      help: 'Tracked clients, by state.',
      type: 'gauge',
      samples: () => {
        const { byState } = readSnapshot().view.clients;
        return CLIENT_STATES.map((state) => ({ labels: { state }, value: byState[state] }));
      },
    },
    {
      name: 'tidegate_client_allowance_ratio',
      help: 'Allowances of the tracked clients: the minimum and the mean; 1 where no client is cut.',
      type: 'gauge',
      aggregation: ({ stat }) => (stat === 'min' ? 'min' : 'mean'),
      samples: () => {
        const { min, mean } = readSnapshot().view.clients.allowance;
        return [
          { labels: { stat: 'min' }, value: min },
          { labels: { stat: 'mean' }, value: mean },
        ];
      },
    },
  ];
}
