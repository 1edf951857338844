import { METRICS, readExportSettings } from '../../telemetry/otlp/export-settings.ts';
import type { MetricsExportOptions } from '../../telemetry/otlp/start-metrics-export.ts';
import type { ResourceStack } from '../resource-stack.ts';

/** Exports metrics to a collector if that is enabled, and loads the modules for it only then. @param resources gets the last export */
export async function exportMetrics(
  options: MetricsExportOptions,
  resources: Pick<ResourceStack, 'push'>,
): Promise<void> {
  const { kind, warning } = readExportSettings(process.env, METRICS);
  if (warning !== undefined) options.logger.warn(warning);
  if (kind === 'off') return;
  const { startMetricsExport } = await import('../../telemetry/otlp/start-metrics-export.ts');
  resources.push(startMetricsExport(options));
}
