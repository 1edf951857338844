import type { Millis } from '../scalars.ts';
import type { SharedQuarantine } from './account-notice.ts';
import type { QuarantineSettings } from './quarantine-settings.ts';

/** What a quarantine is, apart from the clients that it excludes: those are in the `RejectionSeries`. */
export type QuarantineTimes = Omit<SharedQuarantine, 'isCommon' | 'fairnessKey' | 'clients'>;

/** Another process's times are not earlier than so long ago. */
const MAX_AGE: Millis = 30 * 86_400_000;

/** The part of an interval over which several processes spread their probes and trials. */
const SPREAD = 0.1;

/**
 * When the excluded clients of an account probe it, and other clients try it. Of several processes, each delays both by a part of a
 * spread, so that one of them is the first, and its notice makes the others wait. A process takes the whole spread after its own
 * probe, so that another process sends the next one.
 */
export class Quarantine {
  readonly #isShared: boolean;
  #times: QuarantineTimes;
  /** Of the spread, in [0, 1]; 0 unless other processes share the quarantine. */
  #part: number;
  /** A rejection of a request that was sent earlier is not that of a probe. */
  #sentFrom: Millis;
  /** No probe, and no trial, begins before: the last one may still wait to be sent. */
  #probeReservedUntil = Number.NEGATIVE_INFINITY;
  #trialReservedUntil = Number.NEGATIVE_INFINITY;
  readonly #trialInterval: Millis;

  /** @param part undefined if no other process shares the quarantine */
  constructor(times: QuarantineTimes, { interval }: Pick<QuarantineSettings, 'interval'>, part: number | undefined) {
    this.#times = times;
    this.#isShared = part !== undefined;
    this.#part = part ?? 0;
    this.#trialInterval = interval;
    this.#sentFrom = this.probeAt;
  }

  get times(): QuarantineTimes {
    return this.#times;
  }

  get since(): Millis {
    return this.#times.since;
  }

  /** When the next probe may be sent. */
  get probeAt(): Millis {
    const { probeAt, interval } = this.#times;
    return Math.max(probeAt + this.#part * SPREAD * interval, this.#probeReservedUntil);
  }

  /** When the next client that is not excluded tries the account although others are in service. */
  get trialAt(): Millis {
    return Math.max(this.#times.trialAt + this.#part * SPREAD * this.#trialInterval, this.#trialReservedUntil);
  }

  /** Whether a request with this account that was accepted disproves the evidence. */
  isRefutedBy(acceptedSentAt: Millis): boolean {
    return acceptedSentAt > this.#times.evidenceSentAt;
  }

  /** Whether a rejection of an excluded client is that of a probe. */
  isProbe(sentAt: Millis): boolean {
    return sentAt >= this.#sentFrom;
  }

  /** No other probe of this process begins within the interval, whatever becomes of this one. */
  reserveProbe(now: Millis): void {
    this.#sentFrom = now;
    this.#probeReservedUntil = now + this.#times.interval;
  }

  reserveTrial(now: Millis): void {
    this.#trialReservedUntil = now + this.#trialInterval;
  }

  onProbeSent(now: Millis): void {
    this.#takeWholeSpread();
    this.#times = { ...this.#times, probeAt: Math.max(this.#times.probeAt, now + this.#times.interval) };
  }

  onTrialSent(now: Millis): void {
    this.#takeWholeSpread();
    this.#times = { ...this.#times, trialAt: Math.max(this.#times.trialAt, now + this.#trialInterval) };
  }

  /**
   * The only event that makes the evidence later. The exclusion of a further client does not: while clients are excluded more often than
   * the upstream takes to respond, no accepted request would be later than the evidence.
   */
  onProbeFailed(sentAt: Millis, maxInterval: Millis, now: Millis): void {
    const times = this.#times;
    const interval = Math.min(maxInterval, 2 * times.interval);
    this.#takeWholeSpread();
    const evidenceSentAt = Math.max(times.evidenceSentAt, sentAt);
    this.#times = { ...times, evidenceSentAt, interval, probeAt: Math.max(times.probeAt, now + interval) };
    this.#sentFrom = this.probeAt;
  }

  /** Merges what another process knows. @param part of the spread for this process, if another one has probed or tried */
  merge(other: QuarantineTimes, part: number): void {
    const own = this.#times;
    const probeAt = Math.max(own.probeAt, other.probeAt);
    const trialAt = Math.max(own.trialAt, other.trialAt);
    this.#times = {
      since: Math.min(own.since, other.since),
      evidenceSentAt: Math.max(own.evidenceSentAt, other.evidenceSentAt),
      interval: Math.max(own.interval, other.interval),
      probeAt,
      trialAt,
    };
    if (probeAt > own.probeAt || trialAt > own.trialAt) this.#part = part;
    if (probeAt > own.probeAt) this.#sentFrom = this.probeAt;
  }

  #takeWholeSpread(): void {
    if (this.#isShared) this.#part = 1;
  }
}

/**
 * The times of another process's quarantine, bounded: clocks may differ, and so may the settings while a reload reaches one process after
 * another. Returns undefined if a number is not finite.
 */
export function boundTimes(
  { since, evidenceSentAt, interval, probeAt, trialAt }: QuarantineTimes,
  settings: Pick<QuarantineSettings, 'interval' | 'maxInterval'>,
  now: Millis,
): QuarantineTimes | undefined {
  if (![since, evidenceSentAt, interval, probeAt, trialAt].every(Number.isFinite)) return undefined;
  const bounded = Math.max(settings.interval, Math.min(interval, settings.maxInterval));
  const bound = (time: Millis, latest: Millis): Millis => Math.max(now - MAX_AGE, Math.min(time, latest));
  return {
    since: bound(since, now),
    evidenceSentAt: bound(evidenceSentAt, now),
    interval: bounded,
    probeAt: bound(probeAt, now + bounded),
    trialAt: bound(trialAt, now + settings.interval),
  };
}
