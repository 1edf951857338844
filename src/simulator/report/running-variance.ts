/** Welford's running mean and variance (Technometrics 4, 1962). */
export class RunningVariance {
  #n = 0;
  #mean = 0;
  #squares = 0;

  add(value: number): void {
    this.#n += 1;
    const delta = value - this.#mean;
    this.#mean += delta / this.#n;
    this.#squares += delta * (value - this.#mean);
  }

  /** Standard deviation ÷ mean; 0 without values. */
  get coefficientOfVariation(): number {
    return this.#n === 0 || this.#mean === 0 ? 0 : Math.sqrt(this.#squares / this.#n) / this.#mean;
  }
}
