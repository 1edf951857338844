import type { Millis } from '../../core/scalars.ts';
import type { MetricFamily } from './exposition/metric-family.ts';

export interface CertificateExpiry {
  /** The path of the setting, such as `listen.tls.cert`. */
  readonly setting: string;
  /** Milliseconds of the epoch. */
  readonly expiresAt: Millis;
}

export function defineCertificateMetrics(readExpiries: () => Iterable<CertificateExpiry>): MetricFamily[] {
  return [
    {
      name: 'tidegate_certificate_expiry_timestamp_seconds',
      help: 'Time at which a certificate of the configuration expires, by its setting. Absent without certificates.',
      type: 'gauge',
      aggregation: 'primary',
      samples: () =>
        [...readExpiries()].map(({ setting, expiresAt }) => ({ labels: { setting }, value: expiresAt / 1000 })),
    },
  ];
}
