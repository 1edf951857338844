import { createOtlpHttpExportDelegate, convertLegacyHttpOptions } from '@opentelemetry/otlp-exporter-base/node-http';
import { OTLPExporterBase } from '@opentelemetry/otlp-exporter-base';
import { JsonMetricsSerializer, MetricsExporterMetricsHelper } from '@opentelemetry/otlp-transformer';
import {
  AggregationTemporality,
  MeterProvider,
  type MetricProducer,
  PeriodicExportingMetricReader,
  type PushMetricExporter,
  type ResourceMetrics,
} from '@opentelemetry/sdk-metrics';
import type { Millis } from '../../core/scalars.ts';
import type { ProcessMetrics } from '../metrics/exposition/merged-metrics.ts';
import { readMillis } from './export-settings.ts';
import { toMetricData } from './metric-data.ts';
import { type ExportOptions, logSdkProblems, makeResource, shutDownInTime } from './otlp-sdk.ts';

export interface MetricsExportOptions extends ExportOptions {
  readonly registry: { read(): Promise<readonly ProcessMetrics[]> };
}

/** Defaults of OpenTelemetry's "Periodic exporting MetricReader". */
const EXPORT_INTERVAL: Millis = 60_000;
const EXPORT_TIMEOUT: Millis = 30_000;

/**
 * Exports all metrics to a collector by OTLP over HTTP, configured by the variables of OpenTelemetry.
 * @returns a function that exports them once more, within a bounded time
 */
export function startMetricsExport(options: MetricsExportOptions): () => Promise<void> {
  logSdkProblems(options);
  const resource = makeResource(options);
  const startedAt = Date.now();
  const producer: MetricProducer = {
    collect: async () => {
      const metrics = toMetricData(await options.registry.read(), { startedAt, at: Date.now() });
      const scope = { name: 'tidegate', version: options.version };
      return { resourceMetrics: { resource, scopeMetrics: [{ scope, metrics }] }, errors: [] };
    },
  };
  const interval = readMillis(process.env, 'OTEL_METRIC_EXPORT_INTERVAL', EXPORT_INTERVAL);
  const timeout = readMillis(process.env, 'OTEL_METRIC_EXPORT_TIMEOUT', EXPORT_TIMEOUT);
  for (const { warning } of [interval, timeout]) if (warning !== undefined) options.logger.warn(warning);
  const reader = new PeriodicExportingMetricReader({
    exporter: new OtlpMetricExporter(),
    metricProducers: [producer],
    exportIntervalMillis: interval.millis,
    exportTimeoutMillis: Math.min(timeout.millis, interval.millis),
  });
  const provider = new MeterProvider({ resource, readers: [reader] });
  return () => shutDownInTime(provider);
}

/** As JSON, like the traces. Sums are cumulative, as those of Prometheus are. */
class OtlpMetricExporter extends OTLPExporterBase<ResourceMetrics> implements PushMetricExporter {
  constructor() {
    super(
      createOtlpHttpExportDelegate(
        // oxlint-disable-next-line typescript/no-deprecated -- nothing else of the package reads the variables
        convertLegacyHttpOptions({}, 'METRICS', 'v1/metrics', { 'Content-Type': 'application/json' }),
        JsonMetricsSerializer,
        'otlp_http_json_metric_exporter',
        MetricsExporterMetricsHelper,
        undefined,
      ),
    );
  }

  selectAggregationTemporality(): AggregationTemporality {
    return AggregationTemporality.CUMULATIVE;
  }
}
