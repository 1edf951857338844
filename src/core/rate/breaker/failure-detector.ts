import type { Millis } from '../../scalars.ts';
import { saveRevertibleState } from '../decrease.ts';
import type { FailedSend } from '../failed-send.ts';
import type { RevertibleRateState, RateState } from '../rate-state.ts';
import type { BlockCause, BlockStatus } from './active-block.ts';
import { ErrorWindow } from './error-window.ts';
import { FailingSenders } from './failing-senders.ts';
import { MajorityVote } from './majority-vote.ts';
import { RecentSenders, TOOK_PART_WITHIN } from './recent-senders.ts';
import type { RejectedPart } from './rejected-part.ts';
import { RejectedPartDetector } from './rejected-part.ts';
import type { RequestAttributes } from './request-attributes.ts';
import { ANY_REQUEST, commonAttributes, partOfSender } from './request-attributes.ts';

/**
 * Three of four. A block follows a few rejections, and where three clients share a limit, two of three rejections come from
 * one client by chance.
 */
const COMMON_MARGIN = 0.5;

/** What is to be blocked because of errors. */
interface FailedRequests {
  /** The part that fails while others are accepted; undefined for what the failed requests have in common: see `scopeOf`. */
  readonly part: RejectedPart | undefined;
}

/** Finds whether requests fail or are rejected so often that they must be blocked, and what those have in common. */
export class FailureDetector {
  readonly #errorWindow = new ErrorWindow();
  /** Created at the first failure. */
  #failingSenders: FailingSenders | undefined;
  /** Votes of the rejections since the last accepted response, without those of senders that are passed over. */
  #commonRejected: MajorityVote | undefined;
  #rejectedParts: RejectedPartDetector | undefined;
  /** The state of the limit before the first of those rejections. */
  #stateBeforeRejections: RevertibleRateState | undefined;
  /** Created at the first failure too. */
  #failedSenders: RecentSenders | undefined;
  /** The latest time at which an accepted request was sent. */
  #acceptedSentAt = Number.NEGATIVE_INFINITY;

  /** Whether `onAccepted` needs the attributes of a request. */
  get needsAttributes(): boolean {
    return (
      this.#errorWindow.hasRecentErrors ||
      this.#failingSenders?.isEmpty === false ||
      this.#rejectedParts?.isSampling === true ||
      this.#rejectedParts?.senders.isEmpty === false
    );
  }

  /** @param attributes needed while `needsAttributes` is set */
  onAccepted(sentAt: Millis, now: Millis, attributes: RequestAttributes | undefined): void {
    this.#acceptedSentAt = Math.max(this.#acceptedSentAt, sentAt);
    this.#commonRejected?.clear();
    this.#rejectedParts?.senders.onAccepted(attributes, sentAt, now);
    this.#rejectedParts?.onAccepted(attributes);
    this.#failingSenders?.onAccepted(attributes, sentAt, now);
    this.#errorWindow.onAnswer(now, false, attributes);
  }

  /**
   * Call it before the rejection cuts the rate.
   * @param findsParts whether a part of the requests may be blocked alone
   * @returns the part that is rejected alone; undefined if all requests are affected or that is unknown
   */
  onRejected(
    state: RateState,
    { attributes, sentAt }: Pick<FailedSend, 'attributes' | 'sentAt'>,
    findsParts: boolean,
    now: Millis,
  ): RejectedPart | undefined {
    const isPassedOver = this.isPassedOver(attributes, now);
    if (!isPassedOver) {
      this.#commonRejected ??= new MajorityVote(COMMON_MARGIN);
      if (this.#commonRejected.isEmpty) this.#stateBeforeRejections = saveRevertibleState(state);
      this.#commonRejected.add(attributes);
    }
    if (!findsParts) return undefined;
    this.#rejectedParts ??= new RejectedPartDetector();
    this.#rejectedParts.senders.add(attributes, sentAt, now);
    return this.#rejectedParts.onRejected(state, attributes, now, isPassedOver);
  }

  /** A rejection that may be due to this limit, and cuts nothing here: not only the others are rejected. */
  onUnattributedRejection(attributes: RequestAttributes, now: Millis): void {
    this.#rejectedParts ??= new RejectedPartDetector();
    this.#rejectedParts.onIgnored(attributes, now);
  }

  /** Whether one more rejection of this sender says nothing about others: see `FailingSenders`. */
  isPassedOver(attributes: RequestAttributes | undefined, now: Millis): boolean {
    return this.#rejectedParts?.senders.isPassedOver(attributes, now) === true;
  }

  /**
   * Returns what is to be blocked if errors are frequent enough for a block, else undefined. What requests have in common that
   * got no connection is chance.
   * @param justRecovered the upstream has just come back: then only errors in a row count, because a block would turn a
   * partial failure into a total one
   */
  onFailed(
    state: RateState,
    { attributes, sentAt, isUnreachable }: FailedSend,
    justRecovered: boolean,
    now: Millis,
  ): FailedRequests | undefined {
    const known = isUnreachable === true ? undefined : attributes;
    this.recordFailedSender(known, now);
    this.#failingSenders ??= new FailingSenders(TOOK_PART_WITHIN);
    const sender = this.#failingSenders.findPassedOver(known, now);
    this.#failingSenders.add(known, sentAt, now);
    if (known !== undefined && sender !== undefined && !this.#errorWindow.isPathFailing(known)) {
      this.#errorWindow.onFailedAlone(now, known);
      if (!this.#errorWindow.exceedsThresholdAlone(now)) return undefined;
      const scope = this.#errorWindow.scopeOfSender(partOfSender(known, sender));
      return { part: { scope, stateBefore: saveRevertibleState(state) } };
    }
    this.#errorWindow.onAnswer(now, true, known);
    const isBlocked = justRecovered ? this.#errorWindow.areConsecutive : this.#errorWindow.exceedsThreshold(now);
    return isBlocked ? { part: undefined } : undefined;
  }

  /** A request failed or was rejected: its sender takes part in the failures. */
  recordFailedSender(attributes: RequestAttributes | undefined, now: Millis): void {
    if (attributes === undefined) return;
    this.#failedSenders ??= new RecentSenders();
    this.#failedSenders.add(attributes, now);
  }

  /**
   * Whether the sender of a request took part in the failures of this block. If it fails again, that says nothing about others, so
   * these send the probes first.
   */
  hasSenderFailed(attributes: RequestAttributes | undefined, block: Pick<BlockStatus, 'scope' | 'since'>): boolean {
    return attributes !== undefined && this.#failedSenders?.includes(attributes, block) === true;
  }

  /** A request is being sent as the probe of a block. */
  recordProbe(attributes: RequestAttributes | undefined, now: Millis): void {
    if (attributes === undefined) return;
    this.#failedSenders ??= new RecentSenders();
    this.#failedSenders.addProbe(attributes, now);
  }

  /** See `RecentSenders.probeTurn`. */
  probeTurn(attributes: RequestAttributes | undefined, block: Pick<BlockStatus, 'scope' | 'since'>): number {
    return attributes === undefined ? 0 : (this.#failedSenders?.probeTurn(attributes, block) ?? 0);
  }

  /** Whether a request that was sent later than `at` was accepted. */
  hasAcceptedSince(at: Millis): boolean {
    return this.#acceptedSentAt > at;
  }

  /**
   * The state before a block: the rejections that led to it are not the limit's own if they concern a part, so what
   * they cut is restored for the other requests.
   */
  stateBeforeBlock(cause: BlockCause, part: RejectedPart | undefined, state: RateState): RevertibleRateState {
    const before = cause === 'rejections' ? (part?.stateBefore ?? this.#stateBeforeRejections) : undefined;
    return before !== undefined && before.rate >= state.rate ? before : saveRevertibleState(state);
  }

  /** Returns what the failing requests have in common. @param isBlocked whether a block is in force already */
  scopeOf(cause: BlockCause, { attributes }: FailedSend, isBlocked: boolean): number[] {
    if (cause === 'errors') return [...this.#errorWindow.scope];
    const scope = this.#commonRejected?.common ?? [...ANY_REQUEST];
    return isBlocked ? commonAttributes(scope, attributes ?? ANY_REQUEST) : scope;
  }

  /** A block begins or ends: restarts the count of errors. @param isPart whether it is known that others are accepted */
  clearErrors(isPart: boolean, now: Millis): void {
    this.#errorWindow.clear(isPart, now);
    if (!isPart) this.#failingSenders?.restart(now);
  }
}
