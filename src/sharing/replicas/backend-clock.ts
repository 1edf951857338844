import type { Block } from '../../core/rate/breaker/active-block.ts';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import type { PoolTerms } from './replica-protocol.ts';

/** A clock that is off by more was set. */
const CLOCK_SET: Millis = 1000;
/** The quickest answer tells the most, for as long as clocks do not drift. */
const BELIEVED_FOR: Millis = 10_000;
/** What a call takes is known by what the last few took: an eighth each, as RFC 6298 has it. */
const SMOOTHED = 8;

/** What time it is in the pool, as far as its answers tell: halfway between asking and hearing (Cristian, 1989). */
export class PoolClock {
  #offset: Millis = 0;
  #quickest: Millis = Number.POSITIVE_INFINITY;
  #learnedAt: Millis = Number.NEGATIVE_INFINITY;
  #roundTrip: Millis = 0;

  note(askedAt: Millis, heardAt: Millis, poolNow: Millis): void {
    const roundTrip = heardAt - askedAt;
    this.#roundTrip += (roundTrip - this.#roundTrip) / (this.#learnedAt === Number.NEGATIVE_INFINITY ? 1 : SMOOTHED);
    const offset = poolNow - (askedAt + heardAt) / 2;
    const isSet = Math.abs(offset - this.#offset) > CLOCK_SET;
    if (!isSet && roundTrip > this.#quickest && heardAt - this.#learnedAt < BELIEVED_FOR) return;
    this.#offset = offset;
    this.#quickest = roundTrip;
    this.#learnedAt = heardAt;
  }

  /** Whether an answer has told it: before, times of the pool mean nothing here. */
  get isKnown(): boolean {
    return this.#learnedAt !== Number.NEGATIVE_INFINITY;
  }

  /** The pool's time is ahead of ours by so much. */
  get offset(): Millis {
    return this.#offset;
  }

  /** As `offset`, by what was told without being asked for: it does not say how long it was under way, but that the clock was set. */
  offsetBy(toldAt: Millis, heardAt: Millis): Millis {
    const offset = toldAt - heardAt;
    return Math.abs(offset - this.#offset) > CLOCK_SET ? offset : this.#offset;
  }

  /** How long a call takes, smoothed. */
  get roundTrip(): Millis {
    return this.#roundTrip;
  }
}

/** Terms of the pool, whose time is ahead of ours by so much. */
export function atOurTime(terms: PoolTerms, offset: Millis): PoolTerms {
  const { blockedUntil, block, expectedAt, quotaOwner } = terms;
  return {
    ...terms,
    expectedAt: expectedAt - offset,
    blockedUntil: blockedUntil === undefined ? undefined : blockedUntil - offset,
    block: block === undefined ? undefined : earlier(block, offset),
    quotaOwner: quotaOwner === undefined ? undefined : { ...quotaOwner, until: quotaOwner.until - offset },
  };
}

function earlier(block: Block, by: Millis): Block {
  const { since, probeAt, expectedAt, askedUntil } = block;
  return {
    ...block,
    since: since - by,
    probeAt: probeAt - by,
    expectedAt: expectedAt - by,
    askedUntil: askedUntil - by,
  };
}
