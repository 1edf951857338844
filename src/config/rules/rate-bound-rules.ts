import type { RuleFinding, IsWritten } from './rule-finding.ts';
import { mistakeAt } from './rule-finding.ts';
import type { PartialUpstream } from '../load/partial-config.ts';
import type { Path } from '../load/mistakes.ts';
import { formatRate } from '../values/unit-schemas.ts';

type RateBounds = Pick<NonNullable<PartialUpstream['rateLimit']>, 'initialRate' | 'minRate' | 'maxRate'>;

/** The rates of one limit are in order. @param path of the limit */
export function* checkRateBounds(
  path: Path,
  rates: RateBounds | undefined,
  isWritten: IsWritten,
): Generator<RuleFinding> {
  if (rates === undefined) return;
  const { initialRate, minRate, maxRate = Infinity } = rates;
  const minRateText = isWritten([...path, 'minRate']) ? 'minRate' : `minRate (${formatRate(minRate)} unless written)`;
  if (minRate > maxRate) yield mistakeAt([...path, 'maxRate'], `below ${minRateText}`);
  if (initialRate !== undefined && initialRate > maxRate) yield mistakeAt([...path, 'initialRate'], 'above maxRate');
  if (initialRate !== undefined && initialRate < minRate) {
    yield mistakeAt([...path, 'initialRate'], `below ${minRateText}`);
  }
}
