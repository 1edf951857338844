import type { BudgetSettings } from '../core/retry/retry-token-bucket.ts';
import { RetryTokenBucket as Budget } from '../core/retry/retry-token-bucket.ts';
import { rejectUnknownOptions } from './unknown-options.ts';

/**
 * Token bucket that limits retries to a share of successes. Each success earns `ratio` tokens (≥ 0), up to `burst` (≥ 0), which
 * is also the initial number; each retry takes one. Share one instance among all callers of an upstream.
 * @throws TypeError or RangeError for invalid settings
 */
export class RetryBudget extends Budget {
  constructor(settings: BudgetSettings) {
    super(validateSettings(settings));
  }

  /**
   * Changes the settings; the tokens stay, up to the new `burst`.
   * @throws as the constructor; the previous settings stay in effect then
   */
  override adjust(settings: BudgetSettings): void {
    super.adjust(validateSettings(settings));
  }
}

const OPTION_NAMES = ['ratio', 'burst'] as const;

/** Returns a copy, so that later changes of the object have no effect. */
function validateSettings(given: BudgetSettings): BudgetSettings {
  rejectUnknownOptions(given, OPTION_NAMES, 'RetryBudget');
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
