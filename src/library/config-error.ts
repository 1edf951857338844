import type { Mistake } from '../config/load/mistakes.ts';
import { formatMistakes } from '../config/load/mistakes.ts';

/** An invalid configuration or scenario. The message lists every problem, one line each. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly mistakes: readonly Mistake[];

  constructor(mistakes: readonly Mistake[]) {
    super(formatMistakes(mistakes));
    this.mistakes = mistakes;
  }
}
