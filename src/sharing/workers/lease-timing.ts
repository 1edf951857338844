import type { Millis } from '../../core/exchange/attempt-outcome.ts';

/** How a lender lends. What is right depends on how far away its leaseholders are. */
export interface LendingTerms {
  /** Tokens are lent so long before their time, to be there when it comes. */
  readonly lead: Millis;
  /** Then all that are due until then are lent in one go. */
  readonly horizon: Millis;
  /** How long tidings take to arrive, at most, as a rule. */
  readonly notice: Millis;
  /** How long a token may be used after its time. */
  readonly validFor: Millis;
  /** Of a leaseholder that is not heard of for so long, what it has borrowed is taken back. */
  readonly silence: Millis;
}

/** To processes of one machine. */
export const NEARBY: LendingTerms = { lead: 5, horizon: 15, notice: 1, validFor: 25, silence: 1000 };
