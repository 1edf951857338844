import type { Mistake } from '../config/load/mistakes.ts';
import { formatMistakes } from '../config/load/mistakes.ts';

/** A configuration or a scenario that makes no sense: all that is wrong with it, a line each. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly mistakes: readonly Mistake[];

  constructor(mistakes: readonly Mistake[]) {
    super(formatMistakes(mistakes));
    this.mistakes = mistakes;
  }
}
