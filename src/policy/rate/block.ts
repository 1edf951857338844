import type { Millis, PerSecond, Random } from '../types.ts';
import type { RateState } from './state.ts';

/** Rejections in a row, none accepted between, after which nothing is believed to get through. */
const REJECTED_IN_ROW = 3;
const PROBE_BASE: Millis = 50;
const PROBE_GROWTH = 1.5;
/** Not a moment before the upstream asks for it, whatever the clocks do. */
const MARGIN: Millis = 10;
const PROBE_CAP: Millis = 5000;

/** A probe without an answer for this long is lost, and another may go. */
const PROBE_PATIENCE: Millis = 30_000;

/** Nothing gets through: one probe at a time, ever more rarely, until one is accepted. */
export interface Blockade {
  readonly since: Millis;
  readonly cause: 'rejections' | 'errors';
  /** What passed before, requests a second. */
  readonly goodRate: PerSecond;
  /** Whether no limit had been felt before: then none is assumed afterwards. */
  readonly wasOpen: boolean;
  /** Failed probes. */
  probes: number;
  /** When the last of them was sent, or the blockade began: until then nothing got through. */
  shutAt: Millis;
  probeAt: Millis;
  /** When the probe left that is out; undefined when none is out. */
  probeSentAt: Millis | undefined;
  readonly interval: (probes: number, goodRate: PerSecond) => Millis;
}

/** A blockade that begins now; its first probe is to be planned. */
export function blockade(terms: Pick<Blockade, 'cause' | 'goodRate' | 'wasOpen' | 'interval'>, now: Millis): Blockade {
  return { ...terms, since: now, probes: 0, shutAt: now, probeAt: now, probeSentAt: undefined };
}

/** How long until a probe may leave, 0 when one is due. */
export function probeDelay(block: Blockade, now: Millis): Millis {
  const at = block.probeSentAt === undefined ? block.probeAt : block.probeSentAt + PROBE_PATIENCE;
  return Math.max(0, at - now);
}

/** For how long a probe has been due and none has left; 0 when none is due. */
export function probeOverdue(block: Blockade, now: Millis): Millis {
  return block.probeSentAt === undefined ? Math.max(0, now - block.probeAt) : 0;
}

/**
 * Whether an answer to what was sent then ends the blockade. Of rejections any answer is proof, but of errors only that
 * to a probe: where we observe, others are out too, and half of them may be answered.
 */
export function isProof(block: Blockade, sentAt: Millis): boolean {
  return block.cause === 'rejections' ? sentAt > block.since : sentAt >= block.probeAt;
}

/** How long the blockade may be expected to last: while a probe is out, until the next if this one were to fail. */
export function expectedEnd(block: Blockade, now: Millis): Millis {
  const { probeSentAt, probeAt, probes } = block;
  const at = probeSentAt === undefined ? probeAt : probeSentAt + block.interval(probes + 1, block.goodRate);
  return Math.max(0, at - now);
}

/** When a blackout ended: between the last probe that failed and the one, sent at `sentAt`, that did not. */
export function blackoutEnd({ shutAt }: Blockade, sentAt: Millis): Millis {
  return (shutAt + sentAt) / 2;
}

export function isBlackout({ rejectedInRow }: RateState): boolean {
  return rejectedInRow >= REJECTED_IN_ROW;
}

/** The interval · U(0.75, 1.25); what the upstream asks for comes first. */
export function planProbe(block: Blockade, now: Millis, retryAfter: Millis | undefined, random: Random): void {
  const own = block.interval(block.probes, block.goodRate) * (0.75 + 0.5 * random());
  const asked = retryAfter === undefined ? 0 : retryAfter + MARGIN;
  block.probeAt = Math.max(block.probeAt, now + Math.max(own, asked));
  block.probeSentAt = undefined;
}

/**
 * How long until the next probe, after so many that failed: b · 1.5ⁿ, at most 5 s. So each wait is a part of the blackout
 * so far, and its end is missed by no more. b is 50 ms, and no less than what passed before took from one to the next.
 */
export function probeInterval(probes: number, goodRate: PerSecond): Millis {
  return Math.min(PROBE_CAP, Math.max(PROBE_BASE, 1000 / goodRate) * PROBE_GROWTH ** Math.min(probes, 16));
}
