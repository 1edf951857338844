import type { Registry } from 'prom-client';
import type { WorkerAggregation, Exemplar, MetricFamily, MetricSample } from './metric-family.ts';
import type { Labels } from '../counter-set.ts';
import type { ExpositionFormat } from './exposition-format.ts';
import { formatMetrics } from './exposition-format.ts';

/** A metric of one process, in the form that is sent to another. */
export interface ProcessMetrics {
  readonly name: string;
  readonly help: string;
  readonly type: MetricFamily['type'];
  readonly samples: readonly MetricSample[];
}

/** Reads the metrics of this process, to be merged elsewhere. */
export async function readMetrics(registry: Registry): Promise<ProcessMetrics[]> {
  const metrics: ProcessMetrics[] = [];
  for (const { metric } of await readRegistry(registry)) metrics.push(metric);
  return metrics;
}

/**
 * Merges the metrics of a primary and its workers. Counters never decrease, although workers exit and others start; what a
 * worker counted between the last scrape and its exit is lost.
 */
export class MergedMetrics {
  readonly #registry: Registry;
  readonly #collectWorkers: () => Promise<ReadonlyMap<number, readonly ProcessMetrics[]>>;
  /** The last metrics of each worker, repeated for one that does not respond. */
  readonly #lastByWorker = new Map<number, readonly ProcessMetrics[]>();
  readonly #exitedWorkers = new Set<number>();
  /** The sum of the counters of exited workers. */
  #exitedTotals: readonly ProcessMetrics[] = [];

  /** @param collectWorkers returns the metrics of the workers that respond in time, by worker number */
  constructor(registry: Registry, collectWorkers: () => Promise<ReadonlyMap<number, readonly ProcessMetrics[]>>) {
    this.#registry = registry;
    this.#collectWorkers = collectWorkers;
  }

  /** Keeps the counters of a worker that exited. */
  onWorkerExit(worker: number): void {
    this.#exitedWorkers.add(worker);
    const last = this.#lastByWorker.get(worker);
    this.#lastByWorker.delete(worker);
    if (last === undefined) return;
    const counted = last.filter(({ type }) => type !== 'gauge');
    this.#exitedTotals = mergeMetrics([this.#exitedTotals, counted], () => 'sum');
  }

  async metrics(format: ExpositionFormat = 'prometheus'): Promise<string> {
    return formatMetrics(await this.read(), format);
  }

  async read(): Promise<ProcessMetrics[]> {
    const [own, answers] = await Promise.all([readRegistry(this.#registry), this.#collectWorkers()]);
    // A worker may exit while another is awaited.
    for (const [worker, metrics] of answers) {
      if (!this.#exitedWorkers.has(worker)) this.#lastByWorker.set(worker, metrics);
    }
    const aggregations = new Map(own.map(({ metric, aggregation }) => [metric.name, aggregation] as const));
    const aggregationOf = (name: string, labels: Labels): WorkerAggregation => {
      const rule = aggregations.get(name) ?? 'sum';
      return typeof rule === 'function' ? rule(labels) : rule;
    };
    return mergeMetrics(
      [own.map(({ metric }) => metric), this.#exitedTotals, ...this.#lastByWorker.values()],
      aggregationOf,
    );
  }
}

interface MergedSample {
  readonly sample: MetricSample;
  value: number;
  count: number;
  /** The newest. */
  exemplar: Exemplar | undefined;
}

/** @param sources the primary's first */
function mergeMetrics(
  sources: readonly (readonly ProcessMetrics[])[],
  aggregationOf: (name: string, labels: Labels) => WorkerAggregation,
): ProcessMetrics[] {
  const byName = new Map<string, { readonly metric: ProcessMetrics; readonly cells: Map<string, MergedSample> }>();
  for (const [source, metrics] of sources.entries()) {
    for (const metric of metrics) {
      const entry = byName.get(metric.name) ?? { metric, cells: new Map<string, MergedSample>() };
      byName.set(metric.name, entry);
      for (const sample of metric.samples) {
        mergeSample(entry.cells, sample, aggregationOf(metric.name, sample.labels), source === 0);
      }
    }
  }
  return [...byName.values()].map(({ metric, cells }) => ({
    ...metric,
    samples: [...cells.values()].map(({ sample, value, exemplar }) =>
      exemplar === undefined ? { ...sample, value } : { ...sample, value, exemplar },
    ),
  }));
}

function mergeSample(
  cells: Map<string, MergedSample>,
  sample: MetricSample,
  aggregation: WorkerAggregation,
  isPrimary: boolean,
): void {
  if (aggregation === 'primary' && !isPrimary) return;
  const key = `${sample.metricName ?? ''}\0${JSON.stringify(Object.entries(sample.labels))}`;
  const cell = cells.get(key);
  const { value, exemplar } = sample;
  if (cell === undefined) {
    cells.set(key, { sample, value, count: aggregation === 'mean' && isPrimary ? 0 : 1, exemplar });
    return;
  }
  if (exemplar !== undefined && !(exemplar.timestamp < (cell.exemplar?.timestamp ?? 0))) cell.exemplar = exemplar;
  if (aggregation === 'max') cell.value = Math.max(cell.value, value);
  else if (aggregation === 'min') cell.value = Math.min(cell.value, value);
  else if (aggregation === 'mean') {
    cell.count += 1;
    cell.value += (value - cell.value) / cell.count;
  } else cell.value += value;
}

type AggregationRule = MetricFamily['aggregation'];

/**
 * Our aggregation for each aggregator of prom-client 15.1.3. `average` becomes `max`, because an average hides a worker whose event
 * loop is late. A start time or a version is that of the primary.
 */
const AGGREGATION_OF_AGGREGATOR: Readonly<Record<string, WorkerAggregation>> = {
  average: 'max',
  first: 'primary',
  omit: 'primary',
  sum: 'sum',
  max: 'max',
  min: 'min',
  mean: 'mean',
  primary: 'primary',
};

async function readRegistry(
  registry: Registry,
): Promise<{ readonly metric: ProcessMetrics; readonly aggregation: AggregationRule }[]> {
  const metrics: readonly object[] = await registry.getMetricsAsJSON();
  return metrics.filter(isRegisteredMetric).map(({ name, help, type, values, aggregator }) => ({
    metric: {
      name,
      help,
      type,
      samples: values.map(({ labels, value, metricName, exemplar }) => ({
        labels,
        value,
        ...(metricName === undefined ? {} : { metricName }),
        // In prom-client's own metrics, a missing exemplar is null.
        ...(exemplar ? { exemplar } : {}),
      })),
    },
    aggregation: typeof aggregator === 'string' ? (AGGREGATION_OF_AGGREGATOR[aggregator] ?? 'sum') : aggregator,
  }));
}

interface RegisteredMetric {
  readonly name: string;
  readonly help: string;
  readonly type: MetricFamily['type'];
  readonly values: readonly MetricSample[];
  readonly aggregator: AggregationRule;
}

/** The types of prom-client 15.1.3 lack these members of a metric. */
function isRegisteredMetric(metric: object): metric is RegisteredMetric {
  return 'name' in metric && 'values' in metric && Array.isArray(metric.values);
}
