export interface BudgetSettings {
  /** Retries earned by each success, ≥ 0. */
  readonly ratio: number;
  /** The capacity of the bucket, and its balance at the start, ≥ 0. */
  readonly burst: number;
}

/**
 * Limits retries to a share of successes: when an upstream fails as a whole, retrying everything would only multiply the
 * load. A token is spent when a retry is reserved, so retries that are still waiting are counted. (The token scheme of Finagle's
 * and linkerd's retry budgets, without their time window: `burst` bounds what an idle hour can save up.)
 */
export class RetryTokenBucket {
  #settings: BudgetSettings;
  #balance: number;

  constructor(settings: BudgetSettings) {
    this.#settings = settings;
    this.#balance = settings.burst;
  }

  /** Changes the settings. The balance stays, up to the new burst. */
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

  /** For a retry that was reserved and never sent. */
  refund(): void {
    this.#balance = Math.min(this.#settings.burst, this.#balance + 1);
  }

  /** Retries are configured, and the balance does not pay for one. */
  get isSpent(): boolean {
    return this.#settings.burst > 0 && this.#balance < 1;
  }

  /** The balance as a share of the burst, in [0, 1]. */
  get left(): number {
    return this.#settings.burst === 0 ? 0 : this.#balance / this.#settings.burst;
  }
}
