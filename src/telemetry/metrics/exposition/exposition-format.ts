import { Registry, type RegistryContentType } from 'prom-client';
import { registerFamilies } from './metric-family.ts';
import type { ProcessMetrics } from './merged-metrics.ts';

/** The text format of Prometheus, or OpenMetrics 1.0, which has exemplars. */
export type ExpositionFormat = 'prometheus' | 'openmetrics';

export const EXPOSITION_CONTENT_TYPES = {
  prometheus: Registry.PROMETHEUS_CONTENT_TYPE,
  openmetrics: Registry.OPENMETRICS_CONTENT_TYPE,
} as const;

/** Formats metrics for a scraper. */
export async function formatMetrics(metrics: readonly ProcessMetrics[], format: ExpositionFormat): Promise<string> {
  const registry = new Registry<RegistryContentType>();
  registry.setContentType(EXPOSITION_CONTENT_TYPES[format]);
  registerFamilies(
    registry,
    metrics.map(({ samples, ...family }) => ({ ...family, samples: () => samples })),
  );
  return registry.metrics();
}
