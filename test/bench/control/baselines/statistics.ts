/** Statistics that several controllers compute of the latency, from the definitions. */

/** The nth of N sorted values is the quantile n ÷ N. NaN without values. */
export function quantileOf(values: readonly number[], quantile: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(quantile * sorted.length) - 1)] ?? Number.NaN;
}

/** A weighted mean in which each new value has the weight 2 ÷ (window + 1); the plain mean of the first ones. */
export class MovingMean {
  readonly #weight: number;
  readonly #first: number;
  #count = 0;
  value = 0;

  constructor(window: number, first: number) {
    this.#weight = 2 / (window + 1);
    this.#first = first;
  }

  add(value: number): number {
    this.#count = Math.min(this.#count + 1, this.#first + 1);
    const weight = this.#count <= this.#first ? 1 / this.#count : this.#weight;
    this.value += weight * (value - this.value);
    return this.value;
  }
}

/** The last values, at most so many. */
export class RecentValues {
  readonly values: number[] = [];
  readonly #size: number;

  constructor(size: number) {
    this.#size = size;
  }

  add(value: number): void {
    this.values.push(value);
    if (this.values.length > this.#size) this.values.shift();
  }
}

export function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Covariance of two series of one length; their variance if they are the same. */
export function covariance(xs: readonly number[], ys: readonly number[]): number {
  const [meanX, meanY] = [meanOf(xs), meanOf(ys)];
  return meanOf(xs.map((x, i) => (x - meanX) * ((ys[i] ?? meanY) - meanY)));
}

/** Standard deviation ÷ mean. */
export function variation(values: readonly number[]): number {
  return Math.sqrt(covariance(values, values)) / meanOf(values);
}
