import type { Checked, Written } from './checked.ts';
import { mistake } from './checked.ts';
import type { DraftUpstream } from './draft.ts';
import type { Path } from './mistakes.ts';
import { writeRate } from './units.ts';

type Rates = Pick<NonNullable<DraftUpstream['rateLimit']>, 'initialRate' | 'minRate' | 'maxRate'>;

/** The rates of one limit fit together. @param path of what holds them */
export function* checkRates(path: Path, rates: Rates | undefined, written: Written): Generator<Checked> {
  if (rates === undefined) return;
  const { initialRate, minRate, maxRate = Infinity } = rates;
  const least = written([...path, 'minRate']) ? 'minRate' : `minRate (${writeRate(minRate)} unless written)`;
  if (minRate > maxRate) yield mistake([...path, 'maxRate'], `below ${least}`);
  if (initialRate !== undefined && initialRate > maxRate) yield mistake([...path, 'initialRate'], 'above maxRate');
  if (initialRate !== undefined && initialRate < minRate) yield mistake([...path, 'initialRate'], `below ${least}`);
}
