import type { Millis } from '../../../../src/core/scalars.ts';

const ROUNDS = 10;
/** Longer than any attempt. */
const FORGOTTEN_AFTER: Millis = 10_000;

/** The state of delivery when a request was sent. */
interface SentState {
  readonly delivered: number;
  readonly deliveredAt: Millis;
  readonly firstSentAt: Millis;
  readonly isDemandLimited: boolean;
}

/**
 * The maximum rate of delivery in the last ten rounds, in requests per ms. A round ends with the response to a request that was sent
 * after its begin. (Cardwell et al., "Delivery Rate Estimation", draft-cheng-iccrg-delivery-rate-estimation-02, 2022.)
 */
export class DeliveryRate {
  readonly #sends = new Map<Millis, SentState>();
  #maxima: { readonly round: number; readonly rate: number }[] = [];
  #deliveredAt: Millis = 0;
  #firstSentAt: Millis = 0;
  #roundEndsAt = 0;
  delivered = 0;
  round = 0;

  get max(): number {
    return this.#maxima[0]?.rate ?? 0;
  }

  onSent(now: Millis, inFlight: number, isDemandLimited: boolean): void {
    if (inFlight === 0) {
      this.#deliveredAt = now;
      this.#firstSentAt = now;
    }
    for (const sentAt of this.#sends.keys()) {
      if (sentAt > now - FORGOTTEN_AFTER) break;
      this.#sends.delete(sentAt);
    }
    const { delivered } = this;
    const state = { delivered, deliveredAt: this.#deliveredAt, firstSentAt: this.#firstSentAt, isDemandLimited };
    this.#sends.set(now, state);
  }

  /** Returns whether a round ends that was not limited by demand. */
  onDelivered(sentAt: Millis, now: Millis): boolean {
    this.delivered += 1;
    this.#deliveredAt = now;
    const sent = this.#sends.get(sentAt);
    if (sent === undefined) return false;
    this.#firstSentAt = Math.max(this.#firstSentAt, sentAt);
    const endsRound = sent.delivered >= this.#roundEndsAt;
    if (endsRound) {
      this.#roundEndsAt = this.delivered;
      this.round += 1;
    }
    this.#addRate((this.delivered - sent.delivered) / sendOrDelivery(sent, sentAt, now), sent.isDemandLimited);
    return endsRound && !sent.isDemandLimited;
  }

  /** Where demand limits what is sent, a rate only shows that there is at least that. */
  #addRate(rate: number, isDemandLimited: boolean): void {
    if (!Number.isFinite(rate) || (isDemandLimited && rate < this.max)) return;
    this.#maxima = this.#maxima.filter((each) => each.rate > rate && each.round > this.round - ROUNDS);
    this.#maxima.push({ round: this.round, rate });
  }
}

/** The longer of the times in which the requests were sent and in which they were delivered. */
function sendOrDelivery({ firstSentAt, deliveredAt }: SentState, sentAt: Millis, now: Millis): Millis {
  return Math.max(sentAt - firstSentAt, now - deliveredAt);
}
