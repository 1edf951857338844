import type { GateView } from '../../core/events/proxy-events.ts';
import { LIMIT_STATES } from '../../core/events/proxy-events.ts';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import { CLIENT_STATES } from './client-metrics.ts';
import type { Across, Family, Sample } from './exposition/metric-family.ts';
import type { LimitSummary } from './limit-summary.ts';

/** The gate as one scrape sees it. */
export interface Sight {
  readonly view: GateView;
  readonly limits: readonly LimitSummary[];
  /** Milliseconds of the epoch at the origin of the monotonic clock. */
  readonly origin: Millis;
}

/**
 * The metrics read off the gate when somebody scrapes. `look` returns the same sight for all of one scrape.
 * @param limits whose word on limits counts, of several workers: the primary's where it keeps them
 */
export function describeGate(look: () => Sight, limits: Across): Family[] {
  const perLimit = (samples: (summary: LimitSummary, sight: Sight) => Sample[]) => () => {
    const sight = look();
    return sight.limits.flatMap((summary) => samples(summary, sight));
  };

  return [
    {
      name: 'tidegate_retry_budget_available_ratio',
      help: 'Retry budget left, as a share of its burst.',
      type: 'gauge',
      across: 'mean',
      samples: () => [...look().view.budgets].map(([upstream, value]) => ({ labels: { upstream }, value })),
    },
    {
      name: 'tidegate_ratelimit_rate_requests_per_second',
      help: 'Rate in force; +Inf while nothing limits. Of several limits of one scope (one for each client, say) the lowest; limit: the name of a nested one.',
      type: 'gauge',
      across: limits,
      samples: perLimit(({ labels, tightest }) =>
        [...tightest].map(([scope, limit]) => ({ labels: { ...labels, scope }, value: limit.rate })),
      ),
    },
    {
      name: 'tidegate_ratelimit_ceiling_requests_per_second',
      help: 'Highest rate that restoring heads for, of the limit whose rate is told; +Inf where none is known.',
      type: 'gauge',
      across: limits,
      samples: perLimit(({ labels, tightest }) =>
        [...tightest].map(([scope, limit]) => ({ labels: { ...labels, scope }, value: limit.ceiling })),
      ),
    },
    {
      name: 'tidegate_ratelimit_places',
      help: 'How many requests may be in flight at once, where that turned out to be the limit; absent where it did not.',
      type: 'gauge',
      across: limits,
      samples: perLimit(({ labels, tightest }) =>
        [...tightest].flatMap(([scope, { places }]) =>
          places === undefined ? [] : [{ labels: { ...labels, scope }, value: places }],
        ),
      ),
    },
    {
      name: 'tidegate_ratelimit_state',
      help: '1 where at least one limit of the upstream, or of this nested name, is in this state, else 0.',
      type: 'gauge',
      across: limits,
      samples: perLimit(({ labels, states }) =>
        LIMIT_STATES.map((state) => ({ labels: { ...labels, state }, value: states.has(state) ? 1 : 0 })),
      ),
    },
    {
      name: 'tidegate_ratelimit_steered',
      help: '1 while an operator holds a limit of the upstream at a rate (pinned), or lets nothing pass there (blocked), else 0.',
      type: 'gauge',
      across: limits,
      samples: perLimit(({ labels, isPinned, isStopped }) =>
        labels.limit !== undefined
          ? []
          : [
              { labels: { ...labels, how: 'pinned' }, value: isPinned ? 1 : 0 },
              { labels: { ...labels, how: 'blocked' }, value: isStopped ? 1 : 0 },
            ],
      ),
    },
    {
      name: 'tidegate_ratelimit_blocks',
      help: 'How many limits let nothing through but a probe, because of rejections or of errors: of the whole upstream, or of the part of its requests that those had in common.',
      type: 'gauge',
      across: limits,
      samples: perLimit(({ labels, blocks }) =>
        [...blocks].flatMap(([cause, parts]) =>
          [...parts].map(([part, value]) => ({ labels: { ...labels, cause, part }, value })),
        ),
      ),
    },
    {
      name: 'tidegate_upstream_blocked_until_timestamp_seconds',
      help: 'Until when nothing but a probe passes, in seconds of the epoch; of several limits the latest; 0 while none is blocked.',
      type: 'gauge',
      across: limits,
      samples: perLimit(({ labels, blockedUntil }, { origin }) => [
        { labels, value: blockedUntil === undefined ? 0 : (origin + blockedUntil) / 1000 },
      ]),
    },
    {
      name: 'tidegate_upstream_quota_remaining_ratio',
      help: 'What the upstream says is left of its quota; of several limits the least; absent while it says nothing.',
      type: 'gauge',
      across: limits,
      samples: perLimit(({ labels, quotaLeft }) => (quotaLeft === undefined ? [] : [{ labels, value: quotaLeft }])),
    },
    {
      name: 'tidegate_queue_depth',
      help: 'Requests waiting for their turn; in observe mode they have been sent, and would be waiting.',
      type: 'gauge',
      samples: perLimit(({ labels, queued }) => (labels.limit === undefined ? [{ labels, value: queued }] : [])),
    },
    {
      name: 'tidegate_clients_tracked',
      help: 'Clients remembered.',
      type: 'gauge',
      samples: () => [{ labels: {}, value: look().view.clients.tracked }],
    },
    {
      name: 'tidegate_clients_by_state',
      help: 'Clients remembered, by state.',
      type: 'gauge',
      samples: () => {
        const { byState } = look().view.clients;
        return CLIENT_STATES.map((state) => ({ labels: { state }, value: byState[state] }));
      },
    },
    {
      name: 'tidegate_client_allowance_ratio',
      help: 'Allowances of the clients remembered: the least and the mean; 1 where none is held back.',
      type: 'gauge',
      across: ({ stat }) => (stat === 'min' ? 'min' : 'mean'),
      samples: () => {
        const { min, mean } = look().view.clients.allowance;
        return [
          { labels: { stat: 'min' }, value: min },
          { labels: { stat: 'mean' }, value: mean },
        ];
      },
    },
  ];
}
