/** Metrics in the form of OpenTelemetry's SDK. */
import { ValueType } from '@opentelemetry/api';
import { AggregationTemporality, type DataPoint, DataPointType, type MetricData } from '@opentelemetry/sdk-metrics';
import type { Millis } from '../../core/scalars.ts';
import type { Labels } from '../metrics/counter-set.ts';
import type { ProcessMetrics } from '../metrics/exposition/merged-metrics.ts';
import type { MetricSample } from '../metrics/exposition/metric-family.ts';

/** In milliseconds of the epoch. */
export interface MetricPeriod {
  /** Since when counters count. */
  readonly startedAt: Millis;
  readonly at: Millis;
}

type HistogramValue = Extract<MetricData, { dataPointType: DataPointType.HISTOGRAM }>['dataPoints'][number]['value'];

/** The unit that ends the name, in UCUM (OpenTelemetry, "Prometheus and OpenMetrics Compatibility"). */
const UNITS: ReadonlyMap<string, string> = new Map([
  ['seconds', 's'],
  ['bytes', 'By'],
  ['ratio', '1'],
]);

/**
 * Converts metrics of Prometheus. Their names and labels stay, so that the same queries read both. A counter becomes a cumulative,
 * monotonic sum. Left out are exemplars, which the exporter does not send, and values that are no finite number, such as a rate that
 * is not limited: JSON has none of these.
 */
export function toMetricData(metrics: readonly ProcessMetrics[], period: MetricPeriod): MetricData[] {
  return metrics.flatMap((metric) => {
    const { name, help, type } = metric;
    const samples = metric.samples.filter(({ value }) => Number.isFinite(value));
    if (samples.length === 0) return [];
    const descriptor = { name, description: help, unit: unitOf(name), valueType: ValueType.DOUBLE };
    const aggregationTemporality = AggregationTemporality.CUMULATIVE;
    const common = { descriptor, aggregationTemporality };
    if (type === 'histogram') {
      const dataPoints = toHistograms(samples, name).map(({ labels, value }) => toPoint(labels, value, period));
      return { ...common, dataPointType: DataPointType.HISTOGRAM, dataPoints };
    }
    const dataPoints = samples.map(({ labels, value }) => toPoint(labels, value, period));
    if (type === 'gauge') return { ...common, dataPointType: DataPointType.GAUGE, dataPoints };
    return { ...common, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints };
  });
}

function unitOf(name: string): string {
  const words = name.replace(/_total$/, '').split('_');
  return UNITS.get(words.at(-1) ?? '') ?? '';
}

function toPoint<T>(attributes: Labels, value: T, { startedAt, at }: MetricPeriod): DataPoint<T> {
  return { startTime: toHrTime(startedAt), endTime: toHrTime(at), attributes: { ...attributes }, value };
}

/** Seconds and nanoseconds. */
function toHrTime(millis: Millis): [number, number] {
  const seconds = Math.floor(millis / 1000);
  return [seconds, Math.round((millis - 1000 * seconds) * 1e6)];
}

interface HistogramParts {
  readonly labels: Labels;
  /** Cumulative counts by upper bound, in order of the bounds; the last bound is `+Inf`. */
  readonly buckets: { readonly bound: number; readonly count: number }[];
  sum: number;
  count: number;
}

/** Joins the samples of each histogram of the family. */
function toHistograms(
  samples: readonly MetricSample[],
  name: string,
): { readonly labels: Labels; readonly value: HistogramValue }[] {
  const parts = new Map<string, HistogramParts>();
  for (const { labels: all, value, metricName } of samples) {
    const { le, ...labels } = all;
    const key = JSON.stringify(Object.entries(labels));
    const part = parts.get(key) ?? { labels, buckets: [], sum: 0, count: 0 };
    parts.set(key, part);
    if (metricName === `${name}_sum`) part.sum = value;
    else if (metricName === `${name}_count`) part.count = value;
    else if (le !== undefined) part.buckets.push({ bound: le === '+Inf' ? Infinity : Number(le), count: value });
  }
  return [...parts.values()].map(({ labels, buckets, sum, count }) => ({
    labels,
    value: {
      buckets: {
        boundaries: buckets.map(({ bound }) => bound).filter(Number.isFinite),
        counts: buckets.map((bucket, i) => bucket.count - (buckets[i - 1]?.count ?? 0)),
      },
      sum,
      count,
    },
  }));
}
