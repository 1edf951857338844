import type { RequestAttributes } from './request-attributes.ts';
import { clientNumberOf, matchesAttributes } from './request-attributes.ts';
import type { Millis, PerSecond, Random } from '../../scalars.ts';
import type { FailedSend } from '../failed-send.ts';
import { firstProbeSentAt, MAX_DEFERRAL, nextProbeAt, pathDeferral, turnDeferral } from './unanswered-probes.ts';
import type { RevertibleRateState, RateState } from '../rate-state.ts';

/** After this many rejections in a row, nothing is assumed to get through. */
const BLACKOUT_REJECTIONS = 3;
const PROBE_BASE: Millis = 50;
const PROBE_GROWTH = 1.5;
/** Added to a Retry-After, so that no difference of clocks makes a probe early. */
const CLOCK_MARGIN: Millis = 10;
const PROBE_CAP: Millis = 5000;
/** A sender that has failed may send the next probe this share of the delay later than others, or of the time that it took to fail. */
const DEFERRED_SHARE = 0.25;
/** A partial block ends if no request asked for a probe for this long. */
const UNUSED_BLOCK_EXPIRY: Millis = 300_000;

/** The longest `probeTimeout`. */
export const MAX_PROBE_TIMEOUT: Millis = 30_000;

/** The visible state of a block: its scope, and when its next probe may be sent. */
export interface BlockStatus {
  readonly cause: BlockCause;
  /** The attributes that the held requests have in common. */
  readonly scope: RequestAttributes;
  readonly since: Millis;
  /** Whether requests outside the scope have passed since. */
  readonly isPartial: boolean;
  /** When the next probe may be sent; while one is in flight, how long it is waited for. */
  readonly probeAt: Millis;
  /** When the next probe is expected; while one is in flight: if that one fails. */
  readonly expectedAt: Millis;
  /** The number of the client that was last asked to stay away, and until when it sends no probe; 0 for none. */
  readonly heldClient: number;
  readonly heldClientUntil: Millis;
}

export type BlockCause = (typeof BLOCK_CAUSES)[number];
export const BLOCK_CAUSES = ['rejections', 'errors'] as const;

/** What is known of a block when it begins. */
export interface BlockParameters {
  readonly cause: BlockCause;
  /** See `BlockStatus`. */
  scope: number[];
  /** The rate that passed before the block. */
  readonly rateBefore: PerSecond;
  /** Whether the limit was unlimited before: then it is afterwards. */
  readonly wasUnlimited: boolean;
  /** The state of the limit before the block. It applies to requests outside the scope. */
  readonly stateBefore: RevertibleRateState;
  /** Whether another process started the block, so that the rate before is unknown here. */
  readonly isResumed: boolean;
  /** See `FailedSend.overrun`. */
  readonly isOverrun: boolean;
  /** The longest wait for the response to a probe before another may be sent: see `probePatience`. */
  readonly probeTimeout: Millis;
  readonly interval: (failedProbes: number, rateBefore: PerSecond) => Millis;
}

/**
 * A block of all requests or of a part of them: one probe at a time passes, at growing intervals, until one is accepted. Another
 * one may pass while the response to the last one takes long.
 */
export interface ActiveBlock extends BlockParameters {
  readonly since: Millis;
  /** See `BlockStatus`. */
  isPartial: boolean;
  /** The number of failed probes. */
  failedProbes: number;
  /** When the last of them was sent, or the block began: until then nothing got through. */
  lastRejectedProbeAt: Millis;
  probeAt: Millis;
  /** See `BlockStatus`. */
  heldClient: number;
  heldClientUntil: Millis;
  /** When a sender that took part in the failures may send the next probe, if no other has until then. */
  repeatAt: Millis;
  /** When the probe in flight was sent, the last one if there are several; undefined if there is none. */
  probeSentAt: Millis | undefined;
  /** When those before it were sent that have no response yet. */
  earlierProbes: Millis[];
  /** How often another one had to be sent because the last one had no response. */
  overdueProbes: number;
  /** The attributes of the probe in flight; empty if unknown. */
  probeSource: RequestAttributes;
  /** Whether its sender took part in the failures. */
  hasProbeSenderFailed: boolean;
  /** The paths of those before it that have no response yet: of senders that had not failed, and of others. */
  unansweredPaths: number[];
  failedSendersPaths: number[];
}

/** Creates a block that begins now. Call `scheduleProbe` for its first probe. */
export function createBlock(parameters: BlockParameters, now: Millis): ActiveBlock {
  return {
    ...parameters,
    since: now,
    isPartial: false,
    failedProbes: 0,
    lastRejectedProbeAt: now,
    probeAt: now,
    heldClient: 0,
    heldClientUntil: Number.NEGATIVE_INFINITY,
    repeatAt: now,
    probeSentAt: undefined,
    earlierProbes: [],
    overdueProbes: 0,
    probeSource: [],
    hasProbeSenderFailed: false,
    unansweredPaths: [],
    failedSendersPaths: [],
  };
}

export function readBlockStatus(block: ActiveBlock, now: Millis): BlockStatus {
  const { cause, scope, since, isPartial, heldClient, heldClientUntil } = block;
  const probeAt = nextProbeAt(block);
  const expectedAt = now + expectedBlockTime(block, now);
  return { cause, scope, since, isPartial, probeAt, expectedAt, heldClient, heldClientUntil };
}

/** Whether the block holds back this request. A request with unknown attributes is held back unless the block is partial. */
export function isBlockedBy(
  { scope, isPartial }: Pick<BlockStatus, 'scope' | 'isPartial'>,
  attributes?: RequestAttributes,
): boolean {
  return attributes === undefined ? !isPartial : matchesAttributes(scope, attributes);
}

/** The time before which the request is no probe, because its client was asked to stay away. */
export function clientHeldUntilIn(
  { heldClient, heldClientUntil }: Pick<BlockStatus, 'heldClient' | 'heldClientUntil'>,
  attributes?: RequestAttributes,
): Millis {
  return heldClient !== 0 && attributes !== undefined && clientNumberOf(attributes) === heldClient
    ? heldClientUntil
    : Number.NEGATIVE_INFINITY;
}

/**
 * Time until this request may be sent as a probe; 0 if one is due.
 * @param turn see `probeTurn`
 */
export function probeDelay(block: ActiveBlock, now: Millis, attributes?: RequestAttributes, turn?: number): Millis {
  const hasFailed = turn !== undefined;
  const at = nextProbeAt(block) + pathDeferral(block, attributes, hasFailed, true);
  return Math.max(0, earliestProbe(block, at, hasFailed, attributes) + turnDeferral(block, turn) - now);
}

function earliestProbe(block: ActiveBlock, at: Millis, hasFailed: boolean, attributes?: RequestAttributes): Millis {
  return Math.max(at, clientHeldUntilIn(block, attributes), hasFailed ? block.repeatAt : at);
}

/** Whether the block holds back only a part of the requests, none of which has asked for a probe for long. */
export function isUnused({ isPartial, probeSentAt, probeAt, heldClientUntil }: ActiveBlock, now: Millis): boolean {
  if (!isPartial || probeSentAt !== undefined) return false;
  return now - Math.max(probeAt, heldClientUntil) > UNUSED_BLOCK_EXPIRY;
}

/** How long ago the next probe became due without being sent; 0 if none is due. */
export function probeOverdueFor(block: ActiveBlock, now: Millis): Millis {
  return Math.max(0, now - nextProbeAt(block));
}

/**
 * Whether the acceptance of a request ends the block. After rejections, that of any request sent since it began does.
 * After errors, only that of a probe: in observe mode other requests are sent too, and some of them may succeed.
 */
export function provesRecovery(block: ActiveBlock, sentAt: Millis, attributes?: RequestAttributes): boolean {
  if (!isBlockedBy(block, attributes)) return false;
  return block.cause === 'rejections' ? sentAt > block.since : sentAt >= firstProbeSentAt(block);
}

/**
 * How long the block is expected to hold back this request. While a probe is in flight: until the next one, if this one
 * fails. If that is overdue, it may take as long again, until another may be sent without its response; if one had no response
 * before, that long. The time that a sender gives way after that is not part of it: all refused clients return in one sequence,
 * and those that others give way to would return later, too.
 */
export function expectedBlockTime(
  block: ActiveBlock,
  now: Millis,
  attributes?: RequestAttributes,
  hasFailed = false,
): Millis {
  const { probeSentAt, failedProbes } = block;
  let at = block.probeAt;
  let isProbeSlow = false;
  if (probeSentAt !== undefined) {
    const next = probeSentAt + block.interval(failedProbes + 1, block.rateBefore);
    const latest = nextProbeAt(block);
    const overdueFor = Math.max(0, now - next);
    at = overdueFor > 0 && block.overdueProbes > 0 ? latest : Math.min(next + 2 * overdueFor, latest);
    isProbeSlow = at >= latest;
  }
  at += pathDeferral(block, attributes, false, isProbeSlow);
  return Math.max(0, earliestProbe(block, at, hasFailed, attributes) - now);
}

/** Estimates when a blackout ended: halfway from the last failed probe to the accepted one, sent at `sentAt`. */
export function blackoutEnd({ lastRejectedProbeAt }: ActiveBlock, sentAt: Millis): Millis {
  return (lastRejectedProbeAt + sentAt) / 2;
}

export function isBlackout({ consecutiveRejections }: RateState): boolean {
  return consecutiveRejections >= BLACKOUT_REJECTIONS;
}

/**
 * Schedules the next probe after interval · U(0.75, 1.25), or after the Retry-After of the failed probe if that is longer,
 * but at most after `latest`. A Retry-After from before the block only holds its client: the first probe, by another
 * client, shows whether it applies to others. That of a sender that had failed before applies only to such senders.
 * @param hasFailedBefore whether the sender of the failed probe took part in the failures: see `FailureDetector.hasSenderFailed`
 */
export function scheduleProbe(
  block: ActiveBlock,
  { sentAt, retryAfterMs, attributes }: Pick<FailedSend, 'sentAt' | 'retryAfterMs' | 'attributes'>,
  latest: Millis,
  now: Millis,
  random: Random,
  hasFailedBefore = false,
): void {
  const plannedDelay = block.interval(block.failedProbes, block.rateBefore) * (0.75 + 0.5 * random());
  const requestedDelay = retryAfterMs === undefined ? 0 : retryAfterMs + CLOCK_MARGIN;
  const isBeforeBlock = block.failedProbes === 0 && attributes !== undefined;
  const repeatDelay = Math.min(latest, isBeforeBlock ? plannedDelay : Math.max(plannedDelay, requestedDelay));
  const delay = hasFailedBefore ? Math.min(latest, plannedDelay) : repeatDelay;
  block.probeAt = Math.max(block.probeAt, now + delay);
  const deferral = Math.min(MAX_DEFERRAL, DEFERRED_SHARE * Math.max(delay, now - sentAt));
  block.repeatAt = Math.max(block.repeatAt, now + repeatDelay, block.probeAt + deferral);
  block.probeSentAt = undefined;
  if (requestedDelay === 0 || attributes === undefined) return;
  block.heldClient = clientNumberOf(attributes);
  block.heldClientUntil = now + requestedDelay;
}

/**
 * The interval to the next probe after n failed ones: b · 1.5ⁿ, at most 5 s. So the delay in noticing the end of a
 * blackout is proportional to its length. b is the interval of the rate before the block, but at least 50 ms.
 */
export function probeInterval(failedProbes: number, rateBefore: PerSecond): Millis {
  return Math.min(PROBE_CAP, Math.max(PROBE_BASE, 1000 / rateBefore) * PROBE_GROWTH ** Math.min(failedProbes, 16));
}
