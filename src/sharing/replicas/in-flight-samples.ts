import { learnInFlightAtSend } from '../../core/rate/late-knowledge.ts';
import type { Millis } from '../../core/scalars.ts';
import type { AppliedDecrease, AuthoritativeLimit } from '../protocol/authoritative-limit.ts';
import { InFlightHistory } from './in-flight-history.ts';
import type { ReplicaAccount } from './replica-account.ts';

/** Accepted requests beyond this number are not sampled. */
const MAX_PENDING_SAMPLES = 64;

interface PendingSample {
  readonly sentAt: Millis;
  readonly isRejected: boolean;
}

/**
 * Outcomes of requests whose number in flight at the send is not known yet. Each replica reports its sends late; once all
 * have reported, the numbers show whether the upstream limits concurrency.
 */
export class InFlightSamples {
  readonly #history = new InFlightHistory();
  readonly #pending: PendingSample[] = [];

  /** Corrects the number in flight by what a replica reports. */
  adjust(change: number, now: Millis): void {
    this.#history.record(now, change);
  }

  /** Records what one call reported. */
  record(
    { sentAt, endedAt, answeredSentAt }: ReplicaAccount,
    decreases: readonly AppliedDecrease[],
    now: Millis,
  ): void {
    for (const at of sentAt) this.#history.record(Math.min(at, now), 1);
    for (const at of endedAt) this.#history.record(Math.min(at, now), -1);
    for (const at of answeredSentAt) {
      if (this.#pending.length < MAX_PENDING_SAMPLES) this.#pending.push({ sentAt: at, isRejected: false });
    }
    for (const decrease of decreases) {
      if (decrease.cause !== 'errors') this.#pending.push({ sentAt: decrease.sentAt, isRejected: true });
    }
  }

  /** Learns from the samples sent until `reportedUntil`: by now all replicas have reported that time. */
  learn(limit: AuthoritativeLimit<string>, reportedUntil: Millis, now: Millis): void {
    let kept = 0;
    for (const sample of this.#pending) {
      if (sample.sentAt > reportedUntil) {
        this.#pending[kept] = sample;
        kept += 1;
        continue;
      }
      const inFlight = this.#history.inFlightAt(sample.sentAt, limit.meter.inFlight);
      if (inFlight !== undefined && learnInFlightAtSend(limit.meter.adaptiveRate, inFlight, sample.isRejected, now)) {
        limit.startEpoch(now);
      }
    }
    this.#pending.length = kept;
  }
}
