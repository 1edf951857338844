import type { Checked, Written } from './rule-finding.ts';
import { mistake } from './rule-finding.ts';
import type { DraftUpstream } from '../load/partial-config.ts';
import type { Path } from '../load/mistakes.ts';
import { writeRate } from '../values/unit-schemas.ts';

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
