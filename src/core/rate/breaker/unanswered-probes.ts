// A block remembers its probes without a response. They decide how long it waits for the last one, and which request comes next.

import type { Millis } from '../../scalars.ts';
import type { ActiveBlock } from './active-block.ts';
import type { RequestAttributes } from './request-attributes.ts';
import { pathNumbersOf } from './request-attributes.ts';

/** The first probe without a response is waited for this long, the next one twice as long, and so on. */
const PROBE_PATIENCE: Millis = 2000;
/** A request of the path of such a probe may be sent this much later than others, at most. */
const MAX_PATH_DEFERRAL: Millis = 4000;
/** Older ones count as lost. With the growing patience, so many take minutes. */
const MAX_EARLIER_PROBES = 8;
const MAX_PATH_NUMBERS = 40;

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

/** A probe is being sent. One before it that has no response yet may still end the block. */
export function addProbe(block: ActiveBlock, now: Millis, attributes?: RequestAttributes): void {
  const { probeSentAt, earlierProbes, unansweredPaths } = block;
  if (probeSentAt !== undefined) {
    earlierProbes.push(probeSentAt);
    if (earlierProbes.length > MAX_EARLIER_PROBES) earlierProbes.shift();
    if (probePatience(block) < block.probeTimeout) block.overdueProbes += 1;
    for (const number of block.probePath) {
      if (unansweredPaths.includes(number)) continue;
      unansweredPaths.push(number);
      if (unansweredPaths.length > MAX_PATH_NUMBERS) unansweredPaths.shift();
    }
  }
  block.probeSentAt = now;
  block.probePath = attributes === undefined ? [] : pathNumbersOf(attributes);
}

/** The probe that was sent last will have no response. */
export function dropLastProbe(block: ActiveBlock): void {
  block.probeSentAt = undefined;
  block.probePath = [];
  if (block.earlierProbes.length === 0) block.unansweredPaths = [];
}

/** Makes the next probe due now, for any client. */
export function makeProbeDue(block: ActiveBlock, now: Millis): void {
  dropLastProbe(block);
  block.probeAt = Math.min(block.probeAt, now);
  block.heldClientUntil = Number.NEGATIVE_INFINITY;
  block.repeatAt = Math.min(block.repeatAt, now);
  block.unansweredPaths = [];
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
 * no response, the later, because it may be as slow as they are.
 * @param isProbeSlow whether the one in flight counts as such
 */
export function pathDeferral(
  block: ActiveBlock,
  attributes: RequestAttributes | undefined,
  isProbeSlow: boolean,
): Millis {
  const { unansweredPaths, probePath } = block;
  if (attributes === undefined || (unansweredPaths.length === 0 && probePath.length === 0)) return 0;
  const numbers = pathNumbersOf(attributes);
  let common = 0;
  for (const number of numbers) {
    if (unansweredPaths.includes(number) || (isProbeSlow && probePath.includes(number))) common += 1;
  }
  return common === 0 ? 0 : (Math.min(MAX_PATH_DEFERRAL, probePatience(block)) * common) / numbers.length;
}
