import type { LimitDecision, LimitModel } from './limit-model.ts';
import { ACCEPTED } from './limit-model.ts';

export interface UnlimitedSpec {
  readonly kind: 'unlimited';
}

/** No limit: the baseline. */
export class Unlimited implements LimitModel {
  readonly limit = Number.POSITIVE_INFINITY;

  tryAcquire(): LimitDecision {
    return ACCEPTED;
  }

  release(): void {}

  quota(): undefined {
    return undefined;
  }

  /** Without effect. */
  setLimit(): void {}
}
