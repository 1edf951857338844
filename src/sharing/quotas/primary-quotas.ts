import type { QuotaCall, QuotaTerms } from './quota-protocol.ts';

/** From a worker, which numbers its calls. */
export interface NumberedQuotaCall {
  readonly number: number;
  readonly call: QuotaCall;
}

/** From the primary. */
export interface NumberedQuotaTerms {
  readonly number: number;
  /** Undefined if the primary does not have the quota: a reload is under way. */
  readonly terms: QuotaTerms | undefined;
}

export interface PrimaryQuotasParts {
  readonly send: (call: NumberedQuotaCall) => void;
  /** Calls `run` at the end of this turn of the event loop. */
  readonly schedule: (run: () => void) => void;
}

/** The keeper of a worker's quotas: its primary. */
export class PrimaryQuotas {
  readonly #parts: PrimaryQuotasParts;
  readonly #pending = new Map<number, (terms: QuotaTerms | undefined) => void>();
  #number = 0;
  #isGone = false;

  constructor(parts: PrimaryQuotasParts) {
    this.#parts = parts;
  }

  readonly call = (call: QuotaCall, onTerms: (terms: QuotaTerms | undefined) => void): void => {
    if (this.#isGone) return this.#parts.schedule(() => onTerms(undefined));
    this.#number += 1;
    this.#pending.set(this.#number, onTerms);
    this.#parts.send({ number: this.#number, call });
  };

  onTerms({ number, terms }: NumberedQuotaTerms): void {
    const onTerms = this.#pending.get(number);
    this.#pending.delete(number);
    onTerms?.(terms);
  }

  /** No more replies arrive. */
  onKeeperGone(): void {
    this.#isGone = true;
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    for (const onTerms of pending) onTerms(undefined);
  }
}
