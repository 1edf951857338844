import type { BudgetSettings } from '../core/retry/retry-token-bucket.ts';
import { RetryBudget as Budget } from '../core/retry/retry-token-bucket.ts';
import { checkNames } from './unknown-options.ts';

/**
 * Bounds retries to a share of successes: each earns `ratio` of a retry, and `burst` are saved up at most, which is also what
 * one starts with. One for all that ask the same upstream.
 * @throws TypeError or RangeError for settings that make no sense: they would be no budget at all
 */
export class RetryBudget extends Budget {
  constructor(settings: BudgetSettings) {
    super(readSettings(settings));
  }

  /** @throws as the constructor; what was in effect stays so */
  override adjust(settings: BudgetSettings): void {
    super.adjust(readSettings(settings));
  }
}

const NAMES = ['ratio', 'burst'] as const;

/** A copy: what becomes of the object later is not checked. */
function readSettings(given: BudgetSettings): BudgetSettings {
  checkNames(given, NAMES, 'RetryBudget');
  const { ratio, burst } = given;
  for (const [name, value] of [
    ['ratio', ratio],
    ['burst', burst],
  ] as const) {
    if (!(Number.isFinite(value) && value >= 0)) {
      throw new RangeError(`${name} of a RetryBudget must be a number from 0, not ${String(value)}`);
    }
  }
  return { ratio, burst };
}
