import type { Registry } from 'prom-client';
import type { Across, Exemplar, Family, Sample } from './metric-family.ts';
import type { Labels } from '../counter-set.ts';
import type { Format } from './exposition-format.ts';
import { writeMetrics } from './exposition-format.ts';

/** A metric of one process, as it crosses to another. */
export interface ProcessMetrics {
  readonly name: string;
  readonly help: string;
  readonly type: Family['type'];
  readonly samples: readonly Sample[];
}

/** The metrics of this process, to be merged elsewhere. */
export async function readMetrics(registry: Registry): Promise<ProcessMetrics[]> {
  const metrics: ProcessMetrics[] = [];
  for (const { metric } of await readAll(registry)) metrics.push(metric);
  return metrics;
}

/**
 * The metrics of a primary and its workers as those of one: counters never fall, though workers end and others begin.
 * What a worker counted between the last scrape and its death is lost.
 */
export class MergedMetrics {
  readonly #own: Registry;
  readonly #ask: () => Promise<ReadonlyMap<number, readonly ProcessMetrics[]>>;
  /** What each worker said last: told again of one that does not answer. */
  readonly #last = new Map<number, readonly ProcessMetrics[]>();
  readonly #gone = new Set<number>();
  /** What those that have ended had counted. */
  #past: readonly ProcessMetrics[] = [];

  /** @param ask the workers, by their numbers; those that answer in time */
  constructor(own: Registry, ask: () => Promise<ReadonlyMap<number, readonly ProcessMetrics[]>>) {
    this.#own = own;
    this.#ask = ask;
  }

  /** A worker has ended. */
  gone(worker: number): void {
    this.#gone.add(worker);
    const last = this.#last.get(worker);
    this.#last.delete(worker);
    if (last === undefined) return;
    const counted = last.filter(({ type }) => type !== 'gauge');
    this.#past = merge([this.#past, counted], () => 'sum');
  }

  async metrics(format: Format = 'prometheus'): Promise<string> {
    const [own, answers] = await Promise.all([readAll(this.#own), this.#ask()]);
    // One may end while another is waited for.
    for (const [worker, metrics] of answers) if (!this.#gone.has(worker)) this.#last.set(worker, metrics);
    const across = new Map(own.map(({ metric, across: how }) => [metric.name, how] as const));
    const howOf = (name: string, labels: Labels): Across => {
      const how = across.get(name) ?? 'sum';
      return typeof how === 'function' ? how(labels) : how;
    };
    const merged = merge([own.map(({ metric }) => metric), this.#past, ...this.#last.values()], howOf);
    return writeMetrics(merged, format);
  }
}

interface Cell {
  readonly sample: Sample;
  value: number;
  count: number;
  /** The newest. */
  exemplar: Exemplar | undefined;
}

/** @param sources the primary's first */
function merge(
  sources: readonly (readonly ProcessMetrics[])[],
  howOf: (name: string, labels: Labels) => Across,
): ProcessMetrics[] {
  const byName = new Map<string, { readonly metric: ProcessMetrics; readonly cells: Map<string, Cell> }>();
  for (const [source, metrics] of sources.entries()) {
    for (const metric of metrics) {
      const entry = byName.get(metric.name) ?? { metric, cells: new Map<string, Cell>() };
      byName.set(metric.name, entry);
      for (const sample of metric.samples) add(entry.cells, sample, howOf(metric.name, sample.labels), source === 0);
    }
  }
  return [...byName.values()].map(({ metric, cells }) => ({
    ...metric,
    samples: [...cells.values()].map(({ sample, value, exemplar }) =>
      exemplar === undefined ? { ...sample, value } : { ...sample, value, exemplar },
    ),
  }));
}

function add(cells: Map<string, Cell>, sample: Sample, how: Across, isPrimary: boolean): void {
  if (how === 'primary' && !isPrimary) return;
  const key = `${sample.metricName ?? ''}\0${JSON.stringify(Object.entries(sample.labels))}`;
  const cell = cells.get(key);
  const { value, exemplar } = sample;
  if (cell === undefined) {
    cells.set(key, { sample, value, count: how === 'mean' && isPrimary ? 0 : 1, exemplar });
    return;
  }
  if (exemplar !== undefined && !(exemplar.timestamp < (cell.exemplar?.timestamp ?? 0))) cell.exemplar = exemplar;
  if (how === 'max') cell.value = Math.max(cell.value, value);
  else if (how === 'min') cell.value = Math.min(cell.value, value);
  else if (how === 'mean') {
    cell.count += 1;
    cell.value += (value - cell.value) / cell.count;
  } else cell.value += value;
}

type How = Family['across'];

/**
 * prom-client 15.1.3 has its own words for it, of which `average` hides the worker whose event loop is late. Of a start or a
 * version there is but one.
 */
const WORDS: Readonly<Record<string, Across>> = {
  average: 'max',
  first: 'primary',
  omit: 'primary',
  sum: 'sum',
  max: 'max',
  min: 'min',
  mean: 'mean',
  primary: 'primary',
};

async function readAll(registry: Registry): Promise<{ readonly metric: ProcessMetrics; readonly across: How }[]> {
  const metrics: readonly object[] = await registry.getMetricsAsJSON();
  return metrics.filter(isRead).map(({ name, help, type, values, aggregator }) => ({
    metric: {
      name,
      help,
      type,
      samples: values.map(({ labels, value, metricName, exemplar }) => ({
        labels,
        value,
        ...(metricName === undefined ? {} : { metricName }),
        // prom-client's own say null where they have none.
        ...(exemplar ? { exemplar } : {}),
      })),
    },
    across: typeof aggregator === 'string' ? (WORDS[aggregator] ?? 'sum') : aggregator,
  }));
}

interface Read {
  readonly name: string;
  readonly help: string;
  readonly type: Family['type'];
  readonly values: readonly Sample[];
  readonly aggregator: How;
}

/** What prom-client 15.1.3 calls a metric is missing from its types. */
function isRead(metric: object): metric is Read {
  return 'name' in metric && 'values' in metric && Array.isArray(metric.values);
}
