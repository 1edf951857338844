import { Registry, type RegistryContentType } from 'prom-client';
import { exposeFamilies } from './metric-family.ts';
import type { ProcessMetrics } from './merged-metrics.ts';

/** Prometheus' own text format, or OpenMetrics 1.0, which has exemplars. */
export type Format = 'prometheus' | 'openmetrics';

export const CONTENT_TYPES = {
  prometheus: Registry.PROMETHEUS_CONTENT_TYPE,
  openmetrics: Registry.OPENMETRICS_CONTENT_TYPE,
} as const;

/** Metrics as a scraper reads them. */
export async function writeMetrics(metrics: readonly ProcessMetrics[], format: Format): Promise<string> {
  const registry = new Registry<RegistryContentType>();
  registry.setContentType(CONTENT_TYPES[format]);
  exposeFamilies(
    registry,
    metrics.map(({ samples, ...family }) => ({ ...family, samples: () => samples })),
  );
  return registry.metrics();
}
