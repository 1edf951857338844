import type { BlockStatus } from '../../core/rate/breaker/active-block.ts';
import type { Millis } from '../../core/scalars.ts';
import type { ReplicaTerms } from './replica-protocol.ts';

/** A clock that is off by more than this, and than a sample may be wrong, has been set. */
const CLOCK_JUMP: Millis = 1000;
/** The offset of the fastest response is the most precise, until the clocks have drifted. */
const OFFSET_VALID_FOR: Millis = 10_000;
/** The weight of a new round trip in the average is 1/8, as in RFC 6298. */
const SMOOTHING = 8;

/** Estimates the backend's time: a response was made halfway between request and receipt (Cristian, 1989). */
export class BackendClock {
  #offset: Millis = 0;
  #shortestRoundTrip: Millis = Number.POSITIVE_INFINITY;
  #learnedAt: Millis = Number.NEGATIVE_INFINITY;
  #roundTrip: Millis = 0;

  addSample(sentAt: Millis, receivedAt: Millis, backendNow: Millis): void {
    const roundTrip = receivedAt - sentAt;
    this.#roundTrip += (roundTrip - this.#roundTrip) / (this.#learnedAt === Number.NEGATIVE_INFINITY ? 1 : SMOOTHING);
    const offset = backendNow - (sentAt + receivedAt) / 2;
    // Half of the round trip is the most that a sample may be wrong: one way took no time.
    const isSet = Math.abs(offset - this.#offset) > CLOCK_JUMP + roundTrip / 2;
    if (!isSet && roundTrip > this.#shortestRoundTrip && receivedAt - this.#learnedAt < OFFSET_VALID_FOR) return;
    this.#offset = offset;
    this.#shortestRoundTrip = roundTrip;
    this.#learnedAt = receivedAt;
  }

  /** False before the first response, while times of the backend mean nothing here. */
  get isKnown(): boolean {
    return this.#learnedAt !== Number.NEGATIVE_INFINITY;
  }

  /** How far the backend's time is ahead of the local time. */
  get offset(): Millis {
    return this.#offset;
  }

  /** The offset for a broadcast: its transit time is unknown, but it reveals a clock that has been set. */
  offsetFromBroadcast(sentAt: Millis, receivedAt: Millis): Millis {
    const offset = sentAt - receivedAt;
    return Math.abs(offset - this.#offset) > CLOCK_JUMP ? offset : this.#offset;
  }

  /** The smoothed duration of a call. */
  get roundTrip(): Millis {
    return this.#roundTrip;
  }
}

/** Converts terms to local time. @param offset see `BackendClock.offset` */
export function toLocalTime(terms: ReplicaTerms, offset: Millis): ReplicaTerms {
  const { blockedUntil, block, expectedAt, quotaOwner } = terms;
  return {
    ...terms,
    expectedAt: expectedAt - offset,
    blockedUntil: blockedUntil === undefined ? undefined : blockedUntil - offset,
    block: block === undefined ? undefined : shiftBlock(block, offset),
    quotaOwner: quotaOwner === undefined ? undefined : { ...quotaOwner, until: quotaOwner.until - offset },
  };
}

function shiftBlock(block: BlockStatus, by: Millis): BlockStatus {
  const { since, probeAt, expectedAt, heldClientUntil } = block;
  return {
    ...block,
    since: since - by,
    probeAt: probeAt - by,
    expectedAt: expectedAt - by,
    heldClientUntil: heldClientUntil - by,
  };
}
