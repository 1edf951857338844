import type { CutCause } from '../../core/events/proxy-events.ts';
import { LocalMeter } from '../../core/limits/meter.ts';
import type { Rejection } from '../../core/rate/failed-send.ts';
import type { RateSettings } from '../../core/rate/rate-state.ts';
import type { Source } from '../../core/rate/breaker/request-attributes.ts';
import type { Millis, PerSecond, Random } from '../../core/exchange/attempt-outcome.ts';
import { keepStop } from '../../core/limits/meter-stop.ts';
import { partOfSettings } from './scaled-settings.ts';
import type { Known, PoolTerms } from './replica-protocol.ts';

/** A limit while its pool is away: a meter of our own, that begins with our share of what the pool allowed, and learns. */
export class Alone {
  readonly meter: LocalMeter;
  /** In (0, 1]: of the whole. */
  readonly share: number;
  readonly #since: Millis;
  #isCut = false;

  constructor(terms: PoolTerms, share: number, settings: RateSettings, random: Random, now: Millis) {
    const { rate, isQuotaApart } = terms;
    const initialRate = rate === Number.POSITIVE_INFINITY ? settings.initialRate : rate * share;
    this.meter = new LocalMeter(partOfSettings(settings, share, initialRate), random);
    if (isQuotaApart) this.meter.disownQuota(true, now);
    keepStop(this.meter, terms, now);
    this.share = share;
    this.#since = now;
  }

  /** What all may send, if the others fare alike. */
  wholeRate(now: Millis): PerSecond {
    return this.meter.rate(now) / this.share;
  }

  accepted(sentAt: Millis, among: number, now: Millis, source: Source | undefined): void {
    this.meter.accepted(sentAt, this.#ownAmong(sentAt, among), now, source);
  }

  rejected(rejection: Rejection, now: Millis): CutCause | undefined {
    const among = this.#ownAmong(rejection.sentAt, rejection.among);
    const cause = this.meter.rejected({ ...rejection, among }, now);
    if (cause !== undefined) this.#isCut = true;
    return cause;
  }

  /** What to tell a pool that is back. @param epoch the last that was heard of; 0 for none */
  learned(epoch: number, now: Millis): Pick<Known, 'epoch' | 'rate' | 'ceiling'> {
    return {
      // What was learned without ever having heard the pool is worth telling too.
      epoch: this.#isCut ? Math.max(1, epoch) : epoch,
      rate: this.wholeRate(now),
      ceiling: this.meter.ceiling / this.share,
    };
  }

  /** What was sent before counts others too. */
  #ownAmong(sentAt: Millis, among: number): number {
    return sentAt >= this.#since ? among : 0;
  }
}
