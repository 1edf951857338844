import type { KeyRecord } from '../idempotency/key-record.ts';
import { WriteHistory } from '../idempotency/write-history.ts';
import type { OtherAccount, PlannedRetry, RetryProgress } from '../retry/choose-retry.ts';
import type { Millis } from '../scalars.ts';
import type { AttemptOutcome, ErrorOutcome } from './attempt-outcome.ts';
import { isSafe, type RequestFacts } from './request-facts.ts';
import type { BodyReadResult, RoutePolicy, SendStep } from './steps.ts';

/** The bound of `mayResend`. One is enough, unless this process is stopped again and again. */
const MAX_RESENDS = 3;

/** What is known in one exchange about its request so far, and the deadlines that follow from it. */
export class ExchangeState {
  /** As it arrived; `keyed` once a key was found in the body. */
  request: RequestFacts;
  readonly policy: RoutePolicy;
  readonly isWrite: boolean;
  /** Once its write may have taken effect, nothing is reported as if it had not. */
  readonly history: WriteHistory;
  /** Sends made. */
  attempts = 0;
  /** The key is claimed, so other exchanges may have sent the same write: before this one, or at the same time. */
  hasClaimedKey = false;
  /** A retry was reserved. */
  isRetrying = false;
  readonly #expectedTime: () => Millis;
  /** For the response head. Pauses during an upload. */
  #deadline: Millis;
  /** See `ClientTimeouts`. Infinity if it is not known. */
  readonly #clientTimeout: Millis;
  /** When it expires; Infinity before the body has been read. */
  #clientDeadline = Number.POSITIVE_INFINITY;
  #body: BodyReadResult | undefined;
  #resends = 0;
  /** The state of the backoff, for the next retry. */
  #memory = 0;

  constructor(
    request: RequestFacts,
    policy: RoutePolicy,
    arrivedAt: Millis,
    expectedTime: () => Millis,
    clientTimeout = Number.POSITIVE_INFINITY,
  ) {
    this.request = request;
    this.policy = policy;
    this.isWrite = !isSafe(request);
    this.history = new WriteHistory(policy.retry);
    this.#deadline = arrivedAt + policy.timeout;
    this.#expectedTime = expectedTime;
    this.#clientTimeout = clientTimeout;
  }

  get isBodyRead(): boolean {
    return this.#body !== undefined;
  }

  get needsKeyClaim(): boolean {
    return this.policy.claims === true && this.request.keyed && this.isWrite;
  }

  /** The latest time until which the request waits for its key: a response that is kept takes no time. */
  claimBy(): Millis {
    return Math.min(this.#deadline - this.#attemptTimeWithin(this.policy.timeout), this.keyValidUntil());
  }

  /**
   * The latest useful time for a send: it leaves time for the response, the client still waits for it, and the upstream still remembers
   * the key.
   */
  sendBy(): Millis {
    return Math.min(this.claimBy(), this.#clientSendBy());
  }

  /** The latest time until which the request waits for an equal one: half of the timeout stays for an attempt of its own. */
  joinBy(): Millis {
    return Math.min(this.sendBy(), this.#deadline - this.policy.timeout / 2);
  }

  /** The client's timeout, if that determines `sendBy`. */
  get clientTimeout(): Millis | undefined {
    return this.#clientSendBy() < this.claimBy() ? this.#clientTimeout : undefined;
  }

  /** After this the upstream no longer remembers the key: sent again, the write would be another one. Infinity if irrelevant. */
  keyValidUntil(): Millis {
    return this.history.keyValidUntil(this.request);
  }

  /** The time that `sendBy` leaves for an attempt. */
  minAttemptTime(): Millis {
    return this.#attemptTimeWithin(this.clientTimeout ?? this.policy.timeout);
  }

  /** A write may be finished without its client, which then finds the response when it repeats the request. */
  #clientSendBy(): Millis {
    if (this.#clientDeadline === Number.POSITIVE_INFINITY) return Number.POSITIVE_INFINITY;
    if (this.request.keyed && this.policy.retry.onClientGone === 'finish') return Number.POSITIVE_INFINITY;
    return this.#clientDeadline - this.#attemptTimeWithin(this.#clientTimeout);
  }

  /**
   * The time that an attempt needs at least. With less, a definite refusal of a write would become an unknown outcome, and another
   * request would cost the upstream work that nobody waits for. Before the first attempt no outcome is unknown yet, so at least half of
   * the timeout stays for the queue.
   */
  #attemptTimeWithin(timeout: Millis): Millis {
    const { retry, perTryTimeout } = this.policy;
    if (this.isWrite && retry.minAttemptTime === undefined) return 0;
    const max = this.attempts === 0 ? timeout / 2 : timeout;
    const configured = this.isWrite ? (retry.minAttemptTime ?? 0) : 0;
    return Math.min(Math.max(configured, Math.min(this.#expectedTime(), perTryTimeout)), max);
  }

  /** The timeout starts when the upload has ended. */
  onBodyRead(body: BodyReadResult): void {
    this.#body = body;
    this.#deadline = body.at + this.policy.timeout;
    this.#clientDeadline = body.at + this.#clientTimeout;
    if (body.keyed === true) this.request = { ...this.request, keyed: true };
  }

  /** `Expect: 100-continue`: the deadline pauses while the client uploads. */
  onBodyReadAfterAdmission(body: BodyReadResult, admittedAt: Millis): void {
    this.#body = body;
    this.#deadline += body.at - admittedAt;
    this.#clientDeadline = body.at + this.#clientTimeout;
  }

  onKeyClaimed(record: KeyRecord | undefined, hasWaited = false): void {
    this.hasClaimedKey = true;
    this.history.hasWaited = hasWaited;
    this.history.setEarlierRecord(record);
  }

  /**
   * Counts an attempt that is sent `now`. A connection may become available late in the attempt. If that leaves a write too
   * little time, nothing is sent, because a response that comes too late would make the outcome unknown. A streamed body has
   * all its time after its upload.
   */
  nextSend(now: Millis): SendStep {
    const { perTryTimeout } = this.policy;
    const keyValidUntil = this.history.keyValidUntil(this.request, now);
    const ownTime = perTryTimeout - Math.min(this.minAttemptTime(), perTryTimeout / 2);
    const startBy = this.#body?.replayable === true ? Math.min(this.sendBy(), now + ownTime) : keyValidUntil;
    this.attempts += 1;
    return {
      do: 'send',
      attempt: this.attempts,
      timeout: Math.max(1, Math.min(perTryTimeout, this.#deadline - now)),
      startBy,
      keyValidUntil,
      isPinned: this.history.isPinnedToEndpoint(this.request),
    };
  }

  /** Records what an attempt shows about the write. @returns the facts that decide about a retry */
  onOutcome(outcome: AttemptOutcome, sentAt: Millis, now: Millis, otherAccount?: OtherAccount): RetryProgress {
    const { history, request } = this;
    const { mayHaveTakenEffect } = history; // by earlier attempts
    history.onOutcome(request, outcome, sentAt);
    return {
      attempts: this.attempts,
      isBodyReplayable: this.#body?.replayable === true,
      memory: this.#memory,
      mayHaveTakenEffect,
      wasAnswered: history.wasAnswered,
      keyAge: history.keyAge(now),
      isPinned: history.isPinnedToEndpoint(request),
      otherAccount,
    };
  }

  /**
   * Whether the exchange goes on as before an attempt that was not made, because its connection was ready so late that the key has
   * to be looked up again. That is no retry: the upstream was not asked.
   */
  mayResend({ isKeyOutdated, bodyConsumed }: ErrorOutcome): boolean {
    if (isKeyOutdated !== true || bodyConsumed === true || this.#resends >= MAX_RESENDS) return false;
    this.#resends += 1;
    return true;
  }

  onRetryReserved({ memory }: PlannedRetry): void {
    this.isRetrying = true;
    this.#memory = memory;
  }
}
