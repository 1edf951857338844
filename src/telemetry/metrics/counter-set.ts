/** The label names and values of one time series. */
export type Labels = Readonly<Record<string, string>>;

/** One time series of a counter or a gauge: a number with a place of its own, so that counting allocates and hashes nothing. */
export interface Series {
  readonly labels: Labels;
  value: number;
}

/**
 * The counters of one metric that share all labels but some, told apart by `key`.
 * A series comes into being at its first count; those of `initial` exist from the start, at 0, so that a rate() sees
 * their first increment.
 */
export class CounterSet<Key extends string | number> {
  readonly #byKey = new Map<Key, Series>();
  readonly #labelsOf: (key: Key) => Labels;

  /** @param labelsOf The labels of a key; called once a series. */
  constructor(labelsOf: (key: Key) => Labels, initial: Iterable<Key> = []) {
    this.#labelsOf = labelsOf;
    for (const key of initial) this.#open(key);
  }

  get size(): number {
    return this.#byKey.size;
  }

  has(key: Key): boolean {
    return this.#byKey.has(key);
  }

  count(key: Key): void {
    const series = this.#byKey.get(key) ?? this.#open(key);
    series.value += 1;
  }

  values(): Iterable<Series> {
    return this.#byKey.values();
  }

  #open(key: Key): Series {
    const series: Series = { labels: this.#labelsOf(key), value: 0 };
    this.#byKey.set(key, series);
    return series;
  }
}
