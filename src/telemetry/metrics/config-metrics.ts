import type { Family } from './exposition/metric-family.ts';

/** How the configuration stands. */
export interface ConfigReading {
  /** The one that was read last is in effect. */
  readonly ok: boolean;
  /** When one was read that took effect, or said nothing new; milliseconds of the epoch. */
  readonly readAt: number;
}

/** As Prometheus and Alertmanager call theirs. */
export function describeConfig(look: () => ConfigReading): Family[] {
  return [
    {
      name: 'tidegate_config_last_reload_successful',
      help: '1 when the configuration that was read last is in effect; 0 when it was refused, and the one before goes on.',
      type: 'gauge',
      across: 'primary',
      samples: () => [{ labels: {}, value: look().ok ? 1 : 0 }],
    },
    {
      name: 'tidegate_config_last_reload_success_timestamp_seconds',
      help: 'When a configuration was read last that is in effect.',
      type: 'gauge',
      across: 'primary',
      samples: () => [{ labels: {}, value: look().readAt / 1000 }],
    },
  ];
}
