import { isNamedByKey, restsOnKey } from '../retry/choose-retry.ts';
import type { KeyRecord, Millis, Outcome, RequestFacts, RetryPolicy } from '../exchange/attempt-outcome.ts';
import { isSafe } from '../exchange/attempt-outcome.ts';
import { classifyWrite } from './write-outcome.ts';

/** What is known of one request's write: from its own attempts, and from exchanges before it with the same key. */
export class WriteHistory {
  readonly #policy: RetryPolicy;
  #firstSentAt: Millis | undefined;
  /** By an attempt of this exchange. */
  #isOwnOpen = false;
  /** An endpoint has said that it works on the write of this key. */
  #isAtWork = false;
  /** What others have left of it, or have under way. */
  #others: KeyRecord | undefined;

  constructor(policy: RetryPolicy) {
    this.#policy = policy;
  }

  /** It may have taken effect, and no answer of the upstream's has said so. */
  get mayBeDone(): boolean {
    return this.isOwnOpen || this.#others?.isAnswered === false;
  }

  /** The same, by an attempt of this exchange: not where it is known for good what came of the write. */
  get isOwnOpen(): boolean {
    return this.#isOwnOpen && this.#others?.isDone !== true;
  }

  /** By another exchange. */
  get wasAnswered(): boolean {
    return this.#others?.isAnswered === true;
  }

  /** Only the endpoint that knows its key may get it again. */
  isPinned(request: RequestFacts): boolean {
    const isKnown = this.mayBeDone || this.wasAnswered || this.#isAtWork;
    return isKnown && this.#policy.sharesKeys !== true && isNamedByKey(request);
  }

  /** @param record of other exchanges, as it is now */
  recall(record: KeyRecord | undefined): void {
    this.#others = record;
    if (record === undefined) return;
    this.#firstSentAt = Math.min(record.firstSentAt, this.#firstSentAt ?? Number.POSITIVE_INFINITY);
  }

  add(request: RequestFacts, outcome: Outcome, sentAt: Millis): void {
    if (outcome.kind === 'response' || outcome.sent) this.#firstSentAt ??= sentAt;
    this.#isAtWork ||= outcome.kind === 'response' && (outcome.hints.lock || outcome.status === 409);
    if (isSafe(request)) return;
    const meaning = classifyWrite(outcome, this.#policy.notProcessed);
    if (meaning === 'answered') this.#isOwnOpen = false;
    else this.#isOwnOpen ||= meaning === 'may_have_happened';
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
}
