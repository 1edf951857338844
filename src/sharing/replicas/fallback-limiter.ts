import type { CutCause } from '../../core/limits/limit-state.ts';
import { LocalMeter } from '../../core/limits/local-meter.ts';
import type { RejectedSend } from '../../core/rate/failed-send.ts';
import type { RateSettings } from '../../core/rate/rate-state.ts';
import type { RequestAttributes } from '../../core/rate/breaker/request-attributes.ts';
import type { Millis, PerSecond, Random } from '../../core/scalars.ts';
import { restoreStop } from '../../core/limits/meter-stop.ts';
import { scaleSettings } from './scaled-settings.ts';
import type { LastKnownLimit, ReplicaTerms } from './replica-protocol.ts';

/** Limits while the backend does not answer: a local meter that starts at this replica's share of the rate, and learns. */
export class FallbackLimiter {
  readonly meter: LocalMeter;
  /** This replica's part of the whole limit, in (0, 1]. */
  readonly share: number;
  readonly #startedAt: Millis;
  #hasDecreased = false;

  constructor(terms: ReplicaTerms, share: number, settings: RateSettings, random: Random, now: Millis) {
    const { rate, isQuotaPerRequester } = terms;
    const initialRate = rate === Number.POSITIVE_INFINITY ? settings.initialRate : rate * share;
    this.meter = new LocalMeter(scaleSettings(settings, share, initialRate), random);
    if (isQuotaPerRequester) this.meter.dropQuota(true, now);
    restoreStop(this.meter, terms, now);
    this.share = share;
    this.#startedAt = now;
  }

  /** The rate of all replicas, if the others do as this one does. */
  sharedRate(now: Millis): PerSecond {
    return this.meter.rate(now) / this.share;
  }

  onAccepted(
    sentAt: Millis,
    inFlightAtSend: number,
    now: Millis,
    source: RequestAttributes | undefined,
  ): CutCause | undefined {
    return this.meter.onAccepted(sentAt, this.#ownInFlightAtSend(sentAt, inFlightAtSend), now, source);
  }

  onRejected(rejection: RejectedSend, now: Millis): CutCause | undefined {
    const inFlightAtSend = this.#ownInFlightAtSend(rejection.sentAt, rejection.inFlightAtSend);
    const cause = this.meter.onRejected({ ...rejection, inFlightAtSend }, now);
    if (cause !== undefined) this.#hasDecreased = true;
    return cause;
  }

  /** What to report to the backend when it is back. @param epoch the last that was received; 0 for none */
  summarize(epoch: number, now: Millis): Pick<LastKnownLimit, 'epoch' | 'rate' | 'ceiling'> {
    return {
      // The backend ignores the rate of epoch 0, but one that has been decreased here is worth knowing.
      epoch: this.#hasDecreased ? Math.max(1, epoch) : epoch,
      rate: this.sharedRate(now),
      ceiling: this.meter.ceiling / this.share,
    };
  }

  /** The count of a request sent before the fallback includes other replicas, so it is unknown: 0. */
  #ownInFlightAtSend(sentAt: Millis, inFlightAtSend: number): number {
    return sentAt >= this.#startedAt ? inFlightAtSend : 0;
  }
}
