// A block remembers its probes without a response. They decide how long it waits for the last one, and which request comes next.

import type { Millis } from '../../scalars.ts';
import type { ActiveBlock } from './active-block.ts';
import type { FailureDetector } from './failure-detector.ts';
import type { RequestAttributes } from './request-attributes.ts';
import { addressNumberOf, clientNumberOf, pathNumbersOf } from './request-attributes.ts';

/** The first probe without a response is waited for this long, the next one twice as long, and so on. */
const PROBE_PATIENCE: Millis = 2000;
/** A request of the path of such a probe may be sent this much later than others, at most. */
const MAX_PATH_DEFERRAL: Millis = 4000;
/** Older ones count as lost. With the growing patience, so many take minutes. */
const MAX_EARLIER_PROBES = 8;
const MAX_PATH_NUMBERS = 40;
/** Time for a client to return in the second that its Retry-After names. After a probe without a response, always this long. */
export const MAX_DEFERRAL: Millis = 2000;
/** A client that returns in the second that its Retry-After names comes this late at most. */
const MAX_TURN: Millis = 1000;

/**
 * How long the probe in flight is waited for before another one may be sent: a slow request must not make everybody wait, and
 * an upstream that never responds must not get many.
 */
export function probePatience({
  overdueProbes,
  probeTimeout,
}: Pick<ActiveBlock, 'overdueProbes' | 'probeTimeout'>): Millis {
  return Math.min(probeTimeout, PROBE_PATIENCE * 2 ** overdueProbes);
}

/** When the next probe may be sent. */
export function nextProbeAt(block: ActiveBlock): Millis {
  return block.probeSentAt === undefined ? block.probeAt : block.probeSentAt + probePatience(block);
}

/** A probe is being sent. One before it that has no response yet may still end the block, but its sender counts as failed. */
export function addProbe(
  block: ActiveBlock,
  detector: FailureDetector,
  now: Millis,
  attributes: RequestAttributes | undefined,
): void {
  const { probeSentAt, earlierProbes } = block;
  const hasFailed = hasSenderFailed(block, detector, attributes);
  if (probeSentAt !== undefined) {
    if (block.probeSource.length > 0) detector.recordFailedSender(block.probeSource, now);
    earlierProbes.push(probeSentAt);
    if (earlierProbes.length > MAX_EARLIER_PROBES) earlierProbes.shift();
    if (probePatience(block) < block.probeTimeout) block.overdueProbes += 1;
    const paths = block.hasProbeSenderFailed ? block.failedSendersPaths : block.unansweredPaths;
    for (const number of pathNumbersOf(block.probeSource)) {
      if (paths.includes(number)) continue;
      paths.push(number);
      if (paths.length > MAX_PATH_NUMBERS) paths.shift();
    }
  }
  detector.recordProbe(attributes, now);
  block.probeSentAt = now;
  block.probeSource = attributes ?? [];
  block.hasProbeSenderFailed = hasFailed;
}

/** Whether the sender of a request took part in the failures, or the probe in flight is its own. */
export function hasSenderFailed(
  block: ActiveBlock,
  detector: FailureDetector,
  attributes: RequestAttributes | undefined,
): boolean {
  return detector.hasSenderFailed(attributes, block) || isSenderOfProbe(block, attributes);
}

/** The turn of a sender among those that took part in the failures: see `RecentSenders.probeTurn`. Undefined if it did not. */
export function probeTurn(
  block: ActiveBlock,
  detector: FailureDetector,
  attributes: RequestAttributes | undefined,
): number | undefined {
  return hasSenderFailed(block, detector, attributes) ? detector.probeTurn(attributes, block) : undefined;
}

/**
 * How much later than at `repeatAt` the request may be the next probe, because others that have failed send theirs before. After a
 * probe without a response, `repeatAt` is past, so that this includes the time that all of them leave to those that have not failed.
 * @param turn see `probeTurn`
 */
export function turnDeferral({ probeSentAt, probeAt, repeatAt }: ActiveBlock, turn: number | undefined): Millis {
  if (turn === undefined) return 0;
  if (probeSentAt !== undefined) return MAX_DEFERRAL * (1 + turn);
  return turn * Math.max(0, Math.min(MAX_TURN, repeatAt - probeAt));
}

/** Clients are distinguished only if one address is blocked alone: see `FailureDetector.hasSenderFailed`. */
function isSenderOfProbe({ scope, probeSource }: ActiveBlock, attributes: RequestAttributes | undefined): boolean {
  if (attributes === undefined) return false;
  const numberOf = addressNumberOf(scope) === undefined ? addressNumberOf : clientNumberOf;
  const number = numberOf(attributes) ?? 0;
  return number !== 0 && number !== numberOf(scope) && number === numberOf(probeSource);
}

/** The probe that was sent last will have no response. */
export function dropLastProbe(block: ActiveBlock): void {
  block.probeSentAt = undefined;
  block.probeSource = [];
  if (block.earlierProbes.length === 0) clearPaths(block);
}

function clearPaths(block: ActiveBlock): void {
  block.unansweredPaths = [];
  block.failedSendersPaths = [];
}

/** Makes the next probe due now, for any client. */
export function makeProbeDue(block: ActiveBlock, now: Millis): void {
  dropLastProbe(block);
  block.probeAt = Math.min(block.probeAt, now);
  block.heldClientUntil = Number.NEGATIVE_INFINITY;
  block.repeatAt = Math.min(block.repeatAt, now);
  clearPaths(block);
}

/** A request has failed: if it was a probe, that one is no longer waited for. Returns whether it was the one sent last. */
export function endFailedProbe(block: ActiveBlock, sentAt: Millis, now: Millis): boolean {
  const { probeSentAt, earlierProbes } = block;
  if (probeSentAt !== undefined && sentAt >= probeSentAt) {
    // The upstream responds again: a probe without a response was the exception.
    if (now - sentAt < PROBE_PATIENCE) block.overdueProbes = 0;
    dropLastProbe(block);
    return true;
  }
  let index = earlierProbes.length - 1;
  while (index >= 0 && (earlierProbes[index] ?? sentAt) > sentAt) index -= 1;
  if (index >= 0) earlierProbes.splice(index, 1);
  return false;
}

/** The send time from which on the acceptance of a request is that of a probe. */
export function firstProbeSentAt({
  probeAt,
  probeSentAt = probeAt,
  earlierProbes,
}: Pick<ActiveBlock, 'probeAt' | 'probeSentAt' | 'earlierProbes'>): Millis {
  return Math.min(probeAt, probeSentAt, earlierProbes[0] ?? probeAt);
}

/**
 * How much later than others this request may be the next probe: the more of its path it has in common with probes that have
 * no response, the later, because it may be as slow as they are. Those of senders that had failed show nothing about others.
 * @param hasFailed whether its sender took part in the failures
 * @param isProbeSlow whether the one in flight counts as such
 */
export function pathDeferral(
  block: ActiveBlock,
  attributes: RequestAttributes | undefined,
  hasFailed: boolean,
  isProbeSlow: boolean,
): Millis {
  const { unansweredPaths, failedSendersPaths, probeSource, hasProbeSenderFailed } = block;
  if (attributes === undefined) return 0;
  const slow = [
    ...unansweredPaths,
    ...(hasFailed ? failedSendersPaths : []),
    ...(isProbeSlow && (hasFailed || !hasProbeSenderFailed) ? pathNumbersOf(probeSource) : []),
  ];
  if (slow.length === 0) return 0;
  const numbers = pathNumbersOf(attributes);
  const common = numbers.filter((number) => slow.includes(number)).length;
  return common === 0 ? 0 : (Math.min(MAX_PATH_DEFERRAL, probePatience(block)) * common) / numbers.length;
}
