import { restsOnKey } from './retry.ts';
import type { KeyRecord, Millis, Outcome, RequestFacts, RetryPolicy } from './types.ts';
import { mayHaveHappened } from './write-outcome.ts';

/** What is known of one request's write: from its own attempts, and from exchanges before it with the same key. */
export class WriteHistory {
  readonly #policy: RetryPolicy;
  #firstSentAt: Millis | undefined;
  #mayBeDone = false;
  #wasAnswered = false;

  constructor(policy: RetryPolicy) {
    this.#policy = policy;
  }

  /** It may have taken effect, and no answer of the upstream's has said so. */
  get mayBeDone(): boolean {
    return this.#mayBeDone;
  }

  /** In an exchange before this one. */
  get wasAnswered(): boolean {
    return this.#wasAnswered;
  }

  /** Only the endpoint that knows its key may get it again. */
  isPinned(request: RequestFacts): boolean {
    return this.#isKnown && this.#policy.sharesKeys !== true && restsOnKey(request, this.#policy);
  }

  /** What an exchange before it has left. */
  recall(record: KeyRecord | undefined): void {
    if (record === undefined) return;
    this.#firstSentAt = record.firstSentAt;
    if (record.isAnswered) this.#wasAnswered = true;
    else this.#mayBeDone = true;
  }

  /** Another exchange with its key may have it done. */
  doubt(mayBeDone: boolean): void {
    this.#mayBeDone ||= mayBeDone;
  }

  add(request: RequestFacts, outcome: Outcome, sentAt: Millis): void {
    if (outcome.kind === 'response' || outcome.sent) this.#firstSentAt ??= sentAt;
    this.#mayBeDone ||= mayHaveHappened(request, outcome, this.#policy);
  }

  /** Since it was first sent; undefined while it has not been. */
  ageAt(now: Millis): Millis | undefined {
    return this.#firstSentAt === undefined ? undefined : now - this.#firstSentAt;
  }

  /** Sent after this it is another write to the upstream, which has forgotten the key. */
  goodUntil(request: RequestFacts): Millis {
    const { keyTtl } = request;
    if (keyTtl === undefined || this.#firstSentAt === undefined) return Number.POSITIVE_INFINITY;
    return restsOnKey(request, this.#policy) ? this.#firstSentAt + keyTtl : Number.POSITIVE_INFINITY;
  }

  get #isKnown(): boolean {
    return this.#mayBeDone || this.#wasAnswered;
  }
}
