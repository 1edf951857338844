/** The weight of the last cost in the mean and the variance, after as many costs as its inverse. */
const GAIN = 1 / 32;
/** Routes times limits with costs. Beyond this, a cost is not learned. */
const MAX_LEARNED = 1000;

/**
 * The exponentially weighted mean and variance of the costs of one route at one limit (West, "Updating Mean and Variance Estimates",
 * 1979, with a constant gain). The first costs count equally.
 */
export class ExpectedCost {
  mean = 0;
  #variance = 0;
  #count = 0;

  /** The standard deviation, in units. */
  get spread(): number {
    return Math.sqrt(this.#variance);
  }

  /** @param cost in units, ≥ 0 and finite */
  record(cost: number): void {
    this.#count += 1;
    const gain = Math.max(GAIN, 1 / this.#count);
    const difference = cost - this.mean;
    this.mean += gain * difference;
    this.#variance = (1 - gain) * (this.#variance + gain * difference * difference);
  }
}

/** The learned costs of one upstream, by route and limit. Bounded: see `MAX_LEARNED`. */
export class ExpectedCosts {
  readonly #byKey = new Map<string, ExpectedCost>();

  /** @returns undefined before the first cost was recorded */
  find(route: string, limit: string): ExpectedCost | undefined {
    return this.#byKey.get(keyOf(route, limit));
  }

  record(route: string, limit: string, cost: number): void {
    const key = keyOf(route, limit);
    let expected = this.#byKey.get(key);
    if (expected === undefined) {
      if (this.#byKey.size >= MAX_LEARNED) return;
      expected = new ExpectedCost();
      this.#byKey.set(key, expected);
    }
    expected.record(cost);
  }
}

function keyOf(route: string, limit: string): string {
  return `${limit}\0${route}`;
}
