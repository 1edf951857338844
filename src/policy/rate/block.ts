import type { Millis, PerSecond, Random } from '../types.ts';

/** Rejections in a row, none accepted between, after which nothing is believed to get through. */
export const REJECTED_IN_ROW = 3;
const ERRORS = 8;
const ERROR_SPAN: Millis = 2000;
const ERROR_SHARE = 0.5;
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
  /** What passed before, requests a second; what it comes back to. */
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
  const at = block.probeSentAt === undefined ? block.probeAt : block.probeSentAt + PROBE_GROWTH * probeInterval(block);
  return Math.max(0, at - now);
}

/** b · 1.5ⁿ · U(0.75, 1.25), the middle at most 5 s; what the upstream asks for comes first. */
export function planProbe(block: Blockade, now: Millis, retryAfter: Millis | undefined, random: Random): void {
  const own = probeInterval(block) * (0.75 + 0.5 * random());
  const asked = retryAfter === undefined ? 0 : retryAfter + MARGIN;
  block.probeAt = Math.max(block.probeAt, now + Math.max(own, asked));
  block.probeSentAt = undefined;
}

/** Each wait is a part of the blackout so far, so that its end is missed by no more; never faster than what passed before. */
function probeInterval({ probes, goodRate }: Blockade): Millis {
  return Math.min(PROBE_CAP, Math.max(PROBE_BASE, 1000 / goodRate) * PROBE_GROWTH ** Math.min(probes, 16));
}

/** A sliding count of failures: connections refused and broken, timeouts, 502 to 504. */
export class ErrorAccount {
  #windowStart = Number.NEGATIVE_INFINITY;
  #errors = 0;
  #answers = 0;
  #previousErrors = 0;
  #previousAnswers = 0;

  note(now: Millis, failed: boolean): void {
    this.#roll(now);
    this.#answers += 1;
    if (failed) this.#errors += 1;
  }

  /** At least 8 errors, and at least half of all answers, in the last one to two windows of a second. */
  isAlarming(now: Millis): boolean {
    this.#roll(now);
    const errors = this.#errors + this.#previousErrors;
    const answers = this.#answers + this.#previousAnswers;
    return errors >= ERRORS && errors >= ERROR_SHARE * answers;
  }

  clear(): void {
    this.#windowStart = Number.NEGATIVE_INFINITY;
    this.#roll(0);
  }

  #roll(now: Millis): void {
    const width = ERROR_SPAN / 2;
    if (now < this.#windowStart + width) return;
    const isNext = now < this.#windowStart + 2 * width;
    this.#previousErrors = isNext ? this.#errors : 0;
    this.#previousAnswers = isNext ? this.#answers : 0;
    this.#errors = 0;
    this.#answers = 0;
    this.#windowStart = isNext ? this.#windowStart + width : now;
  }
}
