import type { Source } from './request-attributes.ts';
import { addressIn, clientIn, isWithin } from './request-attributes.ts';
import type { Millis, PerSecond, Random } from '../../exchange/attempt-outcome.ts';
import type { Failure } from '../failed-send.ts';
import type { CutState, RateState } from '../rate-state.ts';

/** Rejections in a row, none accepted between, after which nothing is believed to get through. */
const REJECTED_IN_ROW = 3;
const PROBE_BASE: Millis = 50;
const PROBE_GROWTH = 1.5;
/** Not a moment before the upstream asks for it, whatever the clocks do. */
const MARGIN: Millis = 10;
const PROBE_CAP: Millis = 5000;
/** An address whose probe failed may send the next one later than others by this part of the interval. */
const YIELD = 0.25;

/** The longest `patience`. */
export const PROBE_PATIENCE: Millis = 30_000;

/** A block as others see it: what it is about, and when its next probe may leave. */
export interface Block {
  readonly cause: BlockCause;
  /** What the requests have in common that it holds back. */
  readonly scope: Source;
  readonly since: Millis;
  /** Requests that it is not about have passed since. */
  readonly isPartial: boolean;
  /** When the next probe may leave; while one is out, when it counts as lost. */
  readonly probeAt: Millis;
  /** When the next probe is expected to leave; while one is out, if that one fails. */
  readonly expectedAt: Millis;
  /** The client that was last asked to stay away, by its number, and until when: it is no probe before. 0 where nobody was. */
  readonly asked: number;
  readonly askedUntil: Millis;
}

export type BlockCause = (typeof BLOCK_CAUSES)[number];
export const BLOCK_CAUSES = ['rejections', 'errors'] as const;

/** Nothing gets through of a part of all requests, or of all: one probe at a time, ever more rarely, until one is accepted. */
export interface Blockade {
  readonly since: Millis;
  readonly cause: BlockCause;
  /** As of `Block`. */
  scope: number[];
  /** What passed before, requests a second. */
  readonly goodRate: PerSecond;
  /** Whether no limit had been felt before: then none is assumed afterwards. */
  readonly wasOpen: boolean;
  /** How the limit stood before what blocked it: as it stands for requests that it is not about. */
  readonly before: CutState;
  /** As of `Block`. */
  isPartial: boolean;
  /** Another process has made it: what passed before is not known here. */
  readonly isResumed: boolean;
  /** A probe without an answer for so long is lost, and another may go. */
  readonly patience: Millis;
  /** Failed probes. */
  probes: number;
  /** When the last of them was sent, or the blockade began: until then nothing got through. */
  shutAt: Millis;
  probeAt: Millis;
  /** As of `Block`. */
  asked: number;
  askedUntil: Millis;
  /** The address whose probe failed last, and until when other addresses go first; 0 if only this address is blocked. */
  failedFrom: number;
  yieldsUntil: Millis;
  /** When the probe left that is out; undefined when none is out. */
  probeSentAt: Millis | undefined;
  readonly interval: (probes: number, goodRate: PerSecond) => Millis;
}

type Terms = Pick<
  Blockade,
  'cause' | 'scope' | 'goodRate' | 'wasOpen' | 'before' | 'isResumed' | 'patience' | 'interval'
>;

/** A blockade that begins now; its first probe is to be planned. */
export function blockade(terms: Terms, now: Millis): Blockade {
  return {
    ...terms,
    since: now,
    isPartial: false,
    probes: 0,
    shutAt: now,
    probeAt: now,
    asked: 0,
    askedUntil: Number.NEGATIVE_INFINITY,
    failedFrom: 0,
    yieldsUntil: Number.NEGATIVE_INFINITY,
    probeSentAt: undefined,
  };
}

/** A block as it stands now. */
export function blockOf(block: Blockade, now: Millis): Block {
  const { cause, scope, since, isPartial, asked, askedUntil, probeSentAt } = block;
  const probeAt = probeSentAt === undefined ? block.probeAt : probeSentAt + block.patience;
  const expectedAt = now + expectedEnd(block, now);
  return { cause, scope, since, isPartial, probeAt, expectedAt, asked, askedUntil };
}

/** Whether it holds back this request. One whose source is not known is held back unless the block is partial. */
export function isHeldBy({ scope, isPartial }: Pick<Block, 'scope' | 'isPartial'>, source?: Source): boolean {
  return source === undefined ? !isPartial : isWithin(scope, source);
}

/** Before this a request is no probe because its client was asked to stay away. */
export function awayUntil({ asked, askedUntil }: Pick<Block, 'asked' | 'askedUntil'>, source?: Source): Millis {
  return asked !== 0 && source !== undefined && clientIn(source) === asked ? askedUntil : Number.NEGATIVE_INFINITY;
}

/** Before this time the request is no probe, so that another address can send it. */
function yieldsUntil({ failedFrom, yieldsUntil: until }: Blockade, source?: Source): Millis {
  const isItsOwn = failedFrom !== 0 && source !== undefined && addressIn(source) === failedFrom;
  return isItsOwn ? until : Number.NEGATIVE_INFINITY;
}

/** How long until this request may leave as a probe, 0 when one is due. */
export function probeDelay(block: Blockade, now: Millis, source?: Source): Millis {
  const at = block.probeSentAt === undefined ? block.probeAt : block.probeSentAt + block.patience;
  return Math.max(0, Math.max(at, awayUntil(block, source), yieldsUntil(block, source)) - now);
}

/** For how long a probe has been due and none has left; 0 when none is due. */
export function probeOverdue(block: Blockade, now: Millis): Millis {
  return block.probeSentAt === undefined ? Math.max(0, now - block.probeAt) : 0;
}

/**
 * Whether an answer to what was sent then ends the blockade. Of rejections any answer is proof, but of errors only that
 * to a probe: where we observe, others are out too, and half of them may be answered.
 */
export function isProof(block: Blockade, sentAt: Millis, source?: Source): boolean {
  if (!isHeldBy(block, source)) return false;
  return block.cause === 'rejections' ? sentAt > block.since : sentAt >= block.probeAt;
}

/**
 * How long the blockade may be expected to last: while a probe is out, until the next if this one were to fail. Where that
 * is over, it may take as long again as it is late, until it counts as lost.
 */
export function expectedEnd(block: Blockade, now: Millis, source?: Source): Millis {
  const { probeSentAt, probes } = block;
  let at = block.probeAt;
  if (probeSentAt !== undefined) {
    const next = probeSentAt + block.interval(probes + 1, block.goodRate);
    at = Math.min(next + 2 * Math.max(0, now - next), probeSentAt + block.patience);
  }
  return Math.max(0, Math.max(at, awayUntil(block, source), yieldsUntil(block, source)) - now);
}

/** When a blackout ended: between the last probe that failed and the one, sent at `sentAt`, that did not. */
export function blackoutEnd({ shutAt }: Blockade, sentAt: Millis): Millis {
  return (shutAt + sentAt) / 2;
}

export function isBlackout({ rejectedInRow }: RateState): boolean {
  return rejectedInRow >= REJECTED_IN_ROW;
}

/**
 * The interval · U(0.75, 1.25), or what the answer to a probe asks for where that is longer; never later than `latest`. What came
 * before the block asks for is of concern to that client, which is no probe before its time: the first probe shows whether it
 * is to others.
 */
export function planProbe(
  block: Blockade,
  { retryAfter, source }: Pick<Failure, 'retryAfter' | 'source'>,
  latest: Millis,
  now: Millis,
  random: Random,
): void {
  const own = block.interval(block.probes, block.goodRate) * (0.75 + 0.5 * random());
  const asked = retryAfter === undefined ? 0 : retryAfter + MARGIN;
  const least = block.probes === 0 && source !== undefined ? own : Math.max(own, asked);
  block.probeAt = Math.max(block.probeAt, now + Math.min(latest, least));
  block.probeSentAt = undefined;
  const isOfMany = block.probes > 0 && source !== undefined && addressIn(block.scope) === undefined;
  block.failedFrom = isOfMany ? (addressIn(source) ?? 0) : 0;
  block.yieldsUntil = block.probeAt + YIELD * own;
  if (asked === 0 || source === undefined) return;
  block.asked = clientIn(source);
  block.askedUntil = now + asked;
}

/**
 * How long until the next probe, after so many that failed: b · 1.5ⁿ, at most 5 s. So each wait is a part of the blackout
 * so far, and its end is missed by no more. b is 50 ms, and no less than what passed before took from one to the next.
 */
export function probeInterval(probes: number, goodRate: PerSecond): Millis {
  return Math.min(PROBE_CAP, Math.max(PROBE_BASE, 1000 / goodRate) * PROBE_GROWTH ** Math.min(probes, 16));
}
