import type { Millis } from '../../scalars.ts';
import { saveRevertibleState } from '../decrease.ts';
import type { FailedSend } from '../failed-send.ts';
import type { RevertibleRateState, RateState } from '../rate-state.ts';
import type { BlockCause } from './active-block.ts';
import { ErrorWindow } from './error-window.ts';
import { MajorityVote } from './majority-vote.ts';
import type { RejectedPart } from './rejected-part.ts';
import { RejectedPartDetector } from './rejected-part.ts';
import type { RequestAttributes } from './request-attributes.ts';
import { ANY_REQUEST, commonAttributes } from './request-attributes.ts';

/**
 * Three of four. A block follows a few rejections, and where three clients share a limit, two of three rejections come from
 * one client by chance.
 */
const COMMON_MARGIN = 0.5;

/** Finds whether requests fail or are rejected so often that they must be blocked, and what those have in common. */
export class FailureDetector {
  readonly #errorWindow = new ErrorWindow();
  /** Votes of the rejections since the last accepted response. */
  #commonRejected: MajorityVote | undefined;
  #rejectedParts: RejectedPartDetector | undefined;
  /** The state of the limit before the first of those rejections. */
  #stateBeforeRejections: RevertibleRateState | undefined;
  /** The latest time at which an accepted request was sent. */
  #acceptedSentAt = Number.NEGATIVE_INFINITY;

  /** Whether `onAccepted` needs the attributes of a request. */
  get needsAttributes(): boolean {
    return this.#errorWindow.hasRecentErrors || this.#rejectedParts?.isSampling === true;
  }

  /** @param attributes needed while `needsAttributes` is set */
  onAccepted(sentAt: Millis, now: Millis, attributes: RequestAttributes | undefined): void {
    this.#acceptedSentAt = Math.max(this.#acceptedSentAt, sentAt);
    this.#commonRejected?.clear();
    this.#rejectedParts?.onAccepted(attributes);
    this.#errorWindow.onAnswer(now, false, attributes);
  }

  /**
   * Call it before the rejection cuts the rate.
   * @param findsParts whether a part of the requests may be blocked alone
   * @returns the part that is rejected alone; undefined if all requests are affected or that is unknown
   */
  onRejected(
    state: RateState,
    attributes: RequestAttributes | undefined,
    findsParts: boolean,
    now: Millis,
  ): RejectedPart | undefined {
    this.#commonRejected ??= new MajorityVote(COMMON_MARGIN);
    if (this.#commonRejected.isEmpty) this.#stateBeforeRejections = saveRevertibleState(state);
    this.#commonRejected.add(attributes);
    if (!findsParts) return undefined;
    this.#rejectedParts ??= new RejectedPartDetector();
    return this.#rejectedParts.onRejected(state, attributes, now);
  }

  /**
   * Returns whether errors are frequent enough for a block.
   * @param justRecovered the upstream has just come back: then only errors in a row count, because a block would turn a
   * partial failure into a total one
   */
  onFailed(attributes: RequestAttributes | undefined, justRecovered: boolean, now: Millis): boolean {
    this.#errorWindow.onAnswer(now, true, attributes);
    return justRecovered ? this.#errorWindow.areConsecutive : this.#errorWindow.exceedsThreshold(now);
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

  /** A block begins or ends: restarts the count of errors. */
  clearErrors(): void {
    this.#errorWindow.clear();
  }
}
