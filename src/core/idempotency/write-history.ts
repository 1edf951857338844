import { isSafeOnlyByKey } from '../retry/choose-retry.ts';
import type { AttemptOutcome } from '../exchange/attempt-outcome.ts';
import type { KeyRecord } from './key-record.ts';
import { isUnconfirmed } from './key-record.ts';
import type { Millis } from '../scalars.ts';
import type { RequestFacts } from '../exchange/request-facts.ts';
import type { RetryPolicy } from '../retry/retry-policy.ts';
import { isNamedByKey, isSafe } from '../exchange/request-facts.ts';
import { classifyWrite } from './write-outcome.ts';

/** What is known about the write of one request: from its own attempts, and from other exchanges with the same key. */
export class WriteHistory {
  readonly #policy: RetryPolicy;
  #firstSentAt: Millis | undefined;
  /** An attempt of this exchange may have taken effect. */
  #isOwnUnresolved = false;
  /** The upstream answered an attempt of this exchange, which may be followed by another: some declines are retried. */
  #isOwnAnswered = false;
  /** An endpoint reported that the write of this key is in progress. */
  #isInProgress = false;
  /** The record that other exchanges have left. */
  #earlier: KeyRecord | undefined;
  /** Another exchange had the key, and its response follows: this one is a duplicate of it, not a repeat after its end. */
  hasWaited = false;

  constructor(policy: RetryPolicy) {
    this.#policy = policy;
  }

  /** The write may have taken effect, and no response of the upstream has confirmed it. */
  get mayHaveTakenEffect(): boolean {
    return this.isOwnUnresolved || this.#earlier?.isAnswered === false;
  }

  /**
   * The same, or the response that confirms it is still being sent: a refusal must not read as if nothing was done. That response goes to
   * the request that a duplicate has waited for, so it changes nothing for the duplicate.
   */
  get isUnconfirmed(): boolean {
    return this.mayHaveTakenEffect || (!this.hasWaited && isUnconfirmed(this.#earlier));
  }

  /** The write may have taken effect by an attempt of this exchange; false if a final response to the write is known. */
  get isOwnUnresolved(): boolean {
    return this.#isOwnUnresolved && this.#earlier?.isFinal !== true;
  }

  /** The upstream answered the write in another exchange. */
  get wasAnswered(): boolean {
    return this.#earlier?.isAnswered === true;
  }

  /** Only the endpoint that may know the key gets the write again. */
  isPinnedToEndpoint(request: RequestFacts): boolean {
    const isKnown = this.mayHaveTakenEffect || this.#isOwnAnswered || this.wasAnswered || this.#isInProgress;
    return isKnown && this.#policy.sharesKeys !== true && isNamedByKey(request);
  }

  /** @param record the present record of other exchanges */
  setEarlierRecord(record: KeyRecord | undefined): void {
    this.#earlier = record;
    if (record === undefined) return;
    this.#firstSentAt = Math.min(record.firstSentAt, this.#firstSentAt ?? Number.POSITIVE_INFINITY);
  }

  onOutcome(request: RequestFacts, outcome: AttemptOutcome, sentAt: Millis): void {
    if (outcome.kind === 'response' || outcome.sent) this.#firstSentAt ??= sentAt;
    this.#isInProgress ||= outcome.kind === 'response' && (outcome.hints.lock || outcome.status === 409);
    if (isSafe(request)) return;
    const meaning = classifyWrite(request, outcome, this.#policy.notProcessed);
    if (meaning === 'answered') {
      this.#isOwnAnswered = true;
      this.#isOwnUnresolved = false;
    } else this.#isOwnUnresolved ||= meaning === 'may_have_taken_effect';
  }

  /** Time since the key was first sent; undefined if it was not. */
  keyAge(now: Millis): Millis | undefined {
    return this.#firstSentAt === undefined ? undefined : now - this.#firstSentAt;
  }

  /**
   * After this the upstream has forgotten the key: sent again, the write would be another one.
   * @param sendsAt the request is sent then. If others may send the same write meanwhile, even its first attempt may complete theirs
   */
  keyValidUntil(request: RequestFacts, sendsAt?: Millis): Millis {
    const { keyTtl } = request;
    const firstSentAt = this.#firstSentAt ?? (this.#policy.concurrentWrites === true ? sendsAt : undefined);
    if (keyTtl === undefined || firstSentAt === undefined) return Number.POSITIVE_INFINITY;
    return isSafeOnlyByKey(request, this.#policy) ? firstSentAt + keyTtl : Number.POSITIVE_INFINITY;
  }
}
