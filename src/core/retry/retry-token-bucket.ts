export interface BudgetSettings {
  /** Retries earned by each success, ≥ 0. */
  readonly ratio: number;
  /** The most that can be saved up, and what one starts with, ≥ 0. */
  readonly burst: number;
}

/**
 * Retries are a share of successes: when an upstream fails as a whole, retrying all of it would only multiply the load.
 * A token is spent when a retry is begun, so retries asleep are counted. (The token scheme of Finagle's and linkerd's
 * retry budgets, without their time window: `burst` bounds what an idle hour can save up.)
 */
export class RetryBudget {
  #settings: BudgetSettings;
  #balance: number;

  constructor(settings: BudgetSettings) {
    this.#settings = settings;
    this.#balance = settings.burst;
  }

  /** From now on it holds no more than this. What has been earned stays. */
  adjust(settings: BudgetSettings): void {
    this.#settings = settings;
    this.#balance = Math.min(this.#balance, settings.burst);
  }

  earn(): void {
    this.#balance = Math.min(this.#settings.burst, this.#balance + this.#settings.ratio);
  }

  spend(): boolean {
    if (this.#balance < 1) return false;
    this.#balance -= 1;
    return true;
  }

  /** A retry that was begun and never sent gives its token back. */
  refund(): void {
    this.#balance = Math.min(this.#settings.burst, this.#balance + 1);
  }

  /** What is left, as a share of the burst, in [0, 1]. */
  get left(): number {
    return this.#settings.burst === 0 ? 0 : this.#balance / this.#settings.burst;
  }
}
