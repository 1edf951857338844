import type { Millis, PerSecond, Random } from '../../scalars.ts';
import { saveRevertibleState } from '../decrease.ts';
import type { FailedSend } from '../failed-send.ts';
import { MAX_PROBE_DELAY, MIN_GROWTH_PERIOD, type RateSettings, type RateState } from '../rate-state.ts';
import type { RateRules } from '../rules.ts';
import type { ActiveBlock, BlockParameters, BlockStatus } from './active-block.ts';
import {
  createBlock,
  readBlockStatus,
  expectedBlockTime,
  scheduleProbe,
  probeDelay,
  probeOverdueFor,
  MAX_PROBE_TIMEOUT,
} from './active-block.ts';
import { ActiveBlocks } from './active-blocks.ts';
import { type BlockTrigger, estimateRateBefore, MIN_RATE_BEFORE } from './block-trigger.ts';
import { addProbe, dropLastProbe, endFailedProbe, probeTurn } from './unanswered-probes.ts';
import { FailureDetector } from './failure-detector.ts';
import type { RejectedPart } from './rejected-part.ts';
import { commonAttributes, type RequestAttributes } from './request-attributes.ts';

/** The span over which the accepted rate before a block is measured. After recovery, the rate before counts for as long. */
export const ACCEPTED_SPAN: Millis = 10_000;

/** Blocks a limit, or a part of its requests, while nothing gets through, and ends the block by a probe. */
export class Breaker {
  readonly #settings: RateSettings;
  readonly #random: Random;
  readonly #interval: RateRules['probeInterval'];
  readonly detector = new FailureDetector();
  readonly blocks = new ActiveBlocks();
  /** After errors: when the whole rate will be back, what it is, and until when it counts as the accepted rate. */
  #recoveredAt = Number.NEGATIVE_INFINITY;
  #recoveredRate: PerSecond = 0;
  #recoveredRateUntil = Number.NEGATIVE_INFINITY;
  /** After errors on an unlimited limit: when it becomes unlimited again. */
  #reopenAt: Millis | undefined;

  constructor(settings: RateSettings, random: Random, interval: RateRules['probeInterval']) {
    this.#settings = settings;
    this.#random = random;
    this.#interval = interval;
  }

  /** Returns one with the same settings that knows of no failure. */
  restart(): Breaker {
    return new Breaker(this.#settings, this.#random, this.#interval);
  }

  get isActive(): boolean {
    return this.blocks.latest !== undefined;
  }

  /** When the next probe may be sent; undefined if nothing is blocked or the block is partial. */
  get probeAt(): Millis | undefined {
    return this.isPartial ? undefined : this.blocks.latest?.probeAt;
  }

  /** The block that holds back this request. @param attributes absent for the block that began last */
  status(now: Millis, attributes?: RequestAttributes): BlockStatus | undefined {
    const block = this.blocks.findOrLatest(attributes);
    return block === undefined ? undefined : readBlockStatus(block, now);
  }

  /** Whether a block holds back this request. */
  isHeldBack(attributes: RequestAttributes | undefined): boolean {
    return this.blocks.find(attributes) !== undefined;
  }

  /** Whether a block is in force that some requests pass. */
  get isPartial(): boolean {
    return this.blocks.latest?.isPartial === true;
  }

  /** Whether it belongs to a part that is blocked while others pass. */
  isInBlockedPart(attributes: RequestAttributes | undefined): boolean {
    return this.blocks.find(attributes)?.isPartial === true;
  }

  /** Time until this request may be sent as the probe; 0 if one is due or the request is not held back. */
  probeDelay(now: Millis, attributes: RequestAttributes | undefined): Millis {
    const block = this.blocks.find(attributes);
    if (block === undefined) return 0;
    return probeDelay(block, now, attributes, probeTurn(block, this.detector, attributes));
  }

  /** How long ago the next probe became due without being sent; 0 if none is due. @param attributes see `status` */
  probeOverdueFor(now: Millis, attributes?: RequestAttributes): Millis {
    const block = this.blocks.findOrLatest(attributes);
    return block === undefined ? 0 : probeOverdueFor(block, now);
  }

  /** How long the block is expected to hold back this request; 0 if it does not. */
  expectedBlockTime(now: Millis, attributes: RequestAttributes | undefined): Millis {
    const block = this.blocks.find(attributes);
    if (block === undefined) return 0;
    return expectedBlockTime(block, now, attributes, this.detector.hasSenderFailed(attributes, block));
  }

  /** The rate that paces the requests which the block does not hold back. */
  unblockedRate({ rate }: RateState): PerSecond {
    const block = this.blocks.latest;
    return block === undefined || block.isPartial ? rate : block.stateBefore.rate;
  }

  /** The request being admitted is the probe. */
  onProbeSent(now: Millis, attributes?: RequestAttributes): void {
    const block = this.blocks.find(attributes) ?? this.blocks.latest;
    if (block !== undefined) addProbe(block, this.detector, now, attributes);
  }

  /**
   * A request outside the block's scope is being sent: the limit goes on for such requests as before the block. Returns
   * whether it is the first one.
   */
  onUnblockedSend(state: RateState, block = this.blocks.latest): boolean {
    if (block === undefined || block.isPartial) return false;
    block.isPartial = true;
    Object.assign(state, block.stateBefore);
    return true;
  }

  /** The probe was not sent, or its result will never be known: another one may be sent. @param attributes see `status` */
  abandonProbe(attributes?: RequestAttributes): void {
    const block = this.blocks.findOrLatest(attributes);
    if (block !== undefined) dropLastProbe(block);
  }

  /** Schedules the next probe. Ignores requests sent before this one was due: earlier ones, and those of observe mode. */
  onProbeFailed(failure: FailedSend, now: Millis): undefined {
    const block = this.blocks.find(failure.attributes);
    if (block === undefined) return;
    const hasFailedBefore = this.detector.hasSenderFailed(failure.attributes, block);
    this.detector.recordFailedSender(failure.attributes, now);
    const isLast = endFailedProbe(block, failure.sentAt, now);
    const { probeSentAt } = block; // of one that was sent since, and is still waited for
    if (failure.sentAt < block.probeAt && !isLast) return; // no probe
    block.failedProbes += 1;
    block.lastRejectedProbeAt = Math.max(block.lastRejectedProbeAt, failure.sentAt);
    scheduleProbe(block, failure, this.#maxProbeDelay, now, this.#random, hasFailedBefore);
    block.probeSentAt = probeSentAt;
  }

  /**
   * Call it before the rejection cuts the rate.
   * @returns the part that is rejected alone; undefined if all requests are affected or nothing passes beside a block
   */
  onRejected(state: RateState, rejection: FailedSend, now: Millis): RejectedPart | undefined {
    const { attributes } = rejection;
    if (!this.isHeldBack(attributes)) this.detector.recordFailedSender(attributes, now);
    const findsParts = this.blocks.latest?.isPartial !== false && this.#settings.isPerClient !== true;
    return this.detector.onRejected(state, rejection, findsParts, now);
  }

  /** Returns what is to be blocked if errors are frequent enough for a block, else undefined. */
  onFailed(state: RateState, failure: FailedSend, now: Millis): ReturnType<FailureDetector['onFailed']> {
    return this.detector.onFailed(state, failure, now < this.#recoveredRateUntil, now);
  }

  /** A request outside the scope was rejected, and nothing was accepted since the block began: the scope includes it. */
  widen(attributes: RequestAttributes | undefined): undefined {
    const block = this.blocks.latest;
    if (block !== undefined) block.scope = commonAttributes(block.scope, attributes ?? []);
    return undefined;
  }

  /**
   * Blocks the requests that have the failing attributes in common; one probe at a time passes. If nothing was accepted
   * since an earlier block began, the scope of that one stays blocked too.
   */
  block(state: RateState, trigger: BlockTrigger, now: Millis): void {
    const { cause, failure, part } = trigger;
    const previous = this.blocks.latest;
    const isWider = previous !== undefined && part === undefined && !this.detector.hasAcceptedSince(previous.since);
    const found = part === undefined ? this.detector.scopeOf(cause, failure, previous !== undefined) : [...part.scope];
    const scope = isWider ? commonAttributes(previous.scope, found) : found;
    this.onUnblockedSend(state);
    const stateBefore = this.detector.stateBeforeBlock(cause, part, state);
    const wasUnlimited = state.phase === 'open' || this.#reopenAt !== undefined;
    const recoveredRate = now < this.#recoveredRateUntil ? this.#recoveredRate : 0;
    const isRecovering = state.phase === 'restoring' && now < this.#recoveredAt;
    const passed = estimateRateBefore(state, trigger, wasUnlimited, recoveredRate, isRecovering);
    const rateBefore = Math.max(this.#settings.minRate, passed);
    if (!Number.isFinite(state.rate)) state.rate = rateBefore;
    state.phase = 'blocked';
    this.detector.clearErrors(part !== undefined, now);
    const known = { cause, scope, rateBefore, wasUnlimited, stateBefore, isOverrun: failure.overrun === true };
    const block = this.#start({ ...known, isResumed: false }, now);
    scheduleProbe(block, failure, this.#maxProbeDelay, now, this.#random);
    if (part !== undefined) this.onUnblockedSend(state);
  }

  /** Continues with a block that another process had, unless one is in force here. */
  resume(state: RateState, { cause, scope, probeAt, heldClient, heldClientUntil }: BlockStatus, now: Millis): void {
    if (this.isActive) return;
    const stateBefore = saveRevertibleState(state);
    const { rate, phase } = stateBefore;
    const rateBefore = Number.isFinite(rate) ? rate : Math.max(this.#settings.minRate, MIN_RATE_BEFORE);
    state.rate = rateBefore;
    state.phase = 'blocked';
    const known = { cause, scope: [...scope], rateBefore, wasUnlimited: phase === 'open' };
    const block = this.#start({ ...known, stateBefore, isResumed: true, isOverrun: false }, now);
    block.probeAt = Math.min(Math.max(now, probeAt), now + this.#maxProbeDelay);
    Object.assign(block, { heldClient, heldClientUntil });
  }

  #start(parameters: Omit<BlockParameters, 'probeTimeout' | 'interval'>, now: Millis): ActiveBlock {
    const probeTimeout = Math.min(MAX_PROBE_TIMEOUT, this.#maxProbeDelay);
    const block = createBlock({ ...parameters, probeTimeout, interval: this.#interval }, now);
    this.blocks.add(block);
    return block;
  }

  /** Ends the block if an accepted request proves that it may. Returns the block that has ended. */
  endIfProven(
    state: RateState,
    sentAt: Millis,
    now: Millis,
    attributes: RequestAttributes | undefined,
  ): ActiveBlock | undefined {
    const block = this.blocks.removeProven(sentAt, attributes);
    if (block === undefined) return undefined;
    if (block.isResumed) this.onUnblockedSend(state, block);
    this.detector.clearErrors(block.isPartial, now);
    if (block.isPartial) return block;
    this.#reopenAt = undefined;
    if (block.cause === 'errors') {
      this.#recoveredAt = now + MIN_GROWTH_PERIOD;
      this.#recoveredRate = block.rateBefore;
      this.#recoveredRateUntil = now + ACCEPTED_SPAN;
      if (block.wasUnlimited && this.#settings.initialRate === undefined) this.#reopenAt = this.#recoveredAt;
    }
    return block;
  }

  /** Whether a limit that was unlimited before errors blocked it has recovered, and becomes unlimited again. */
  isReopenDue(now: Millis): boolean {
    return this.#reopenAt !== undefined && now >= this.#reopenAt;
  }

  /** The limit was met since: it does not become unlimited. */
  cancelReopen(): void {
    this.#reopenAt = undefined;
  }

  get #maxProbeDelay(): Millis {
    return this.#settings.maxProbeDelay ?? MAX_PROBE_DELAY;
  }
}
