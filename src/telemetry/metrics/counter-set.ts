/** The label names and values of one time series. */
export type Labels = Readonly<Record<string, string>>;

/** One time series of a counter or a gauge: an object of its own, so that counting allocates and hashes nothing. */
export interface TimeSeries {
  readonly labels: Labels;
  value: number;
}

/**
 * The counters of one metric that differ in some labels, by `key`. A series is created at its first count; those of `initial`
 * exist from the start, at 0, so that a rate() sees their first increment.
 */
export class CounterSet<Key extends string | number> {
  readonly #byKey = new Map<Key, TimeSeries>();
  readonly #labelsOf: (key: Key) => Labels;

  /** @param labelsOf the labels of a key; called once per series */
  constructor(labelsOf: (key: Key) => Labels, initial: Iterable<Key> = []) {
    this.#labelsOf = labelsOf;
    for (const key of initial) this.#create(key);
  }

  get size(): number {
    return this.#byKey.size;
  }

  has(key: Key): boolean {
    return this.#byKey.has(key);
  }

  count(key: Key): void {
    const series = this.#byKey.get(key) ?? this.#create(key);
    series.value += 1;
  }

  values(): Iterable<TimeSeries> {
    return this.#byKey.values();
  }

  #create(key: Key): TimeSeries {
    const series: TimeSeries = { labels: this.#labelsOf(key), value: 0 };
    this.#byKey.set(key, series);
    return series;
  }
}
