import type { MetricFamily } from './exposition/metric-family.ts';

/** The result of the last reload. */
export interface ConfigReloadState {
  /** The last reload succeeded. */
  readonly ok: boolean;
  /** The last successful reload, with or without changes; milliseconds of the epoch. */
  readonly readAt: number;
}

/** Named as the same metrics of Prometheus and Alertmanager. */
export function defineConfigMetrics(readState: () => ConfigReloadState): MetricFamily[] {
  return [
    {
      name: 'tidegate_config_last_reload_successful',
      help: '1 if the last reload succeeded; 0 if it failed and the previous configuration stays in effect.',
      type: 'gauge',
      aggregation: 'primary',
      samples: () => [{ labels: {}, value: readState().ok ? 1 : 0 }],
    },
    {
      name: 'tidegate_config_last_reload_success_timestamp_seconds',
      help: 'Time of the last successful reload of the configuration.',
      type: 'gauge',
      aggregation: 'primary',
      samples: () => [{ labels: {}, value: readState().readAt / 1000 }],
    },
  ];
}
