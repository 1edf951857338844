import type { BlockStatus } from '../../core/rate/breaker/active-block.ts';
import { BLOCK_CAUSES } from '../../core/rate/breaker/active-block.ts';
import { PASSES_AFTER_REJECTION } from '../../core/rate/breaker/rejected-part.ts';
import type { FailedSend, RejectedSend } from '../../core/rate/failed-send.ts';
import type { QuotaOwner } from '../../core/quota/requester.ts';
import { ANY_REQUESTER } from '../../core/quota/requester.ts';
import type { RequestAttributes } from '../../core/rate/breaker/request-attributes.ts';
import { ATTRIBUTE_COUNT } from '../../core/rate/breaker/request-attributes.ts';
import type { Millis, PerSecond } from '../../core/scalars.ts';
import type { Quota } from '../../core/hints/hints.ts';
import type { EncodedUsage } from './usage-entries.ts';
import {
  TOKEN_RETURNED,
  SENT,
  ENDED,
  ACCEPTED,
  REJECTED,
  FAILED,
  OVERRUN,
  UNREACHABLE,
  QUOTA,
  STOPPED,
  RATE_REMEMBERED,
  PROBE_ABANDONED,
  TOKEN_UNUSED,
  EPOCH_SEEN,
  QUOTA_SPENT,
  QUOTA_DISOWNED,
  ACCEPTED_FROM_SOURCE,
  PROBED,
  BLOCK_BYPASSED,
  BLOCKED,
  RESPONDED,
  ABANDONED,
  ENTRY_LENGTHS,
  UNKNOWN,
} from './usage-entries.ts';

const WIDEST = Math.max(...ENTRY_LENGTHS);
const EMPTY = new Float64Array(0);
/** The first allocation is small, because there may be a log for each client. A larger buffer than `SHRINK_ABOVE` is freed when taken. */
const INITIAL_LENGTH = 16;
const SHRINK_ABOVE = 8192;
/** The number of accepted requests that are logged with their attributes after a failure. */
const SOURCES_AFTER_FAILURE = 64;

/**
 * The usage of one limit, in order, as numbers in one buffer: an entry allocates no object, and the buffer is sent to another
 * process as it is.
 */
export class UsageLog {
  #numbers = EMPTY;
  #length = 0;
  /** The number of accepted requests still to be logged with their attributes. */
  #sourcesLeft = 0;
  #isRoutine = true;

  /** Whether there are only tokens, sends, ends and successes, from which nothing new can be learned about the limit alone. */
  get isRoutine(): boolean {
    return this.#isRoutine;
  }

  get isEmpty(): boolean {
    return this.#length === 0;
  }

  /** Returns all entries, and clears the log. */
  take(): EncodedUsage {
    if (this.#length === 0) return EMPTY;
    this.#isRoutine = true;
    const taken = this.#numbers.slice(0, this.#length);
    this.#length = 0;
    if (this.#numbers.length > SHRINK_ABOVE) this.#numbers = EMPTY;
    return taken;
  }

  tokenReturned(): void {
    this.#write(TOKEN_RETURNED);
  }

  sent(serial: number, now: Millis): void {
    this.#write(SENT, serial, now);
  }

  responded(now: Millis): void {
    this.#write(RESPONDED, now);
  }

  ended(now: Millis): void {
    this.#write(ENDED, now);
  }

  /** A request failed lately: accepted requests are logged with their attributes. */
  get includesSources(): boolean {
    return this.#sourcesLeft > 0;
  }

  accepted(sentAt: Millis, serial: number, now: Millis, source?: RequestAttributes): void {
    this.#sourcesLeft = Math.max(0, this.#sourcesLeft - 1);
    if (source === undefined) return this.#write(ACCEPTED, sentAt, serial, now);
    this.#write(ACCEPTED_FROM_SOURCE, sentAt, serial, now);
    this.#writeSource(source);
  }

  /** @param rejection with the serial as `inFlightAtSend` */
  rejected(
    { sentAt, inFlightAtSend, retryAfterMs, activeClients, overrun = false, attributes }: RejectedSend,
    now: Millis,
  ): void {
    this.#sourcesLeft = Math.max(this.#sourcesLeft, PASSES_AFTER_REJECTION);
    this.#write(REJECTED, sentAt, inFlightAtSend, retryAfterMs ?? UNKNOWN, activeClients, overrun ? 1 : 0, now);
    this.#writeSource(attributes);
  }

  failed({ sentAt, retryAfterMs, overrun, isUnreachable, attributes }: FailedSend, now: Millis): void {
    this.#sourcesLeft = SOURCES_AFTER_FAILURE;
    const flags = (overrun === true ? OVERRUN : 0) + (isUnreachable === true ? UNREACHABLE : 0);
    this.#write(FAILED, sentAt, retryAfterMs ?? UNKNOWN, flags, now);
    this.#writeSource(attributes);
  }

  /** See `FailedSend.isAbandoned`. */
  abandoned(sentAt: Millis, now: Millis): void {
    this.#write(ABANDONED, sentAt, now);
  }

  /** The next send is the probe of a partial block. */
  probed(now: Millis): void {
    this.#write(PROBED, now);
  }

  /** A request that the block does not concern is to pass. */
  blockBypassed(now: Millis): void {
    this.#write(BLOCK_BYPASSED, now);
  }

  blocked({ cause, scope, probeAt, heldClient, heldClientUntil }: BlockStatus, now: Millis): void {
    this.#write(BLOCKED, BLOCK_CAUSES.indexOf(cause), probeAt, heldClient, heldClientUntil, now);
    this.#writeSource(scope);
  }

  quota({ remaining, limit, resetIn, window }: Quota, sentAt: Millis, now: Millis, requester = ANY_REQUESTER): void {
    const { credential, client, address } = requester;
    this.#write(
      QUOTA,
      remaining,
      limit ?? UNKNOWN,
      resetIn ?? UNKNOWN,
      window ?? UNKNOWN,
      credential ?? UNKNOWN,
      client ?? UNKNOWN,
      sentAt,
      now,
      address ?? UNKNOWN,
    );
  }

  quotaSpent({ until, credential, client, isCommon, isSpent }: QuotaOwner, now: Millis): void {
    this.#write(
      QUOTA_SPENT,
      until,
      credential ?? UNKNOWN,
      client ?? UNKNOWN,
      (isCommon ? 1 : 0) + (isSpent ? 2 : 0),
      now,
    );
  }

  quotaDisowned(isApart: boolean, now: Millis): void {
    this.#write(QUOTA_DISOWNED, isApart ? 1 : 0, now);
  }

  stopped(until: Millis): void {
    this.#write(STOPPED, until);
  }

  rateRemembered(accepted: PerSecond, now: Millis): void {
    this.#write(RATE_REMEMBERED, accepted, now);
  }

  probeAbandoned(): void {
    this.#write(PROBE_ABANDONED);
  }

  /** The following entries were made with knowledge of this epoch. */
  epochSeen(epoch: number): void {
    this.#write(EPOCH_SEEN, epoch);
  }

  /** A token was not used. @param slot its time */
  tokenUnused(slot: Millis): void {
    this.#write(TOKEN_UNUSED, slot);
  }

  /** Always writes ten numbers: those beyond the entry's length are overwritten by its attributes or by the next entry. */
  #write(kind: number, a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0, i = 0): void {
    const at = this.#length;
    if (at + WIDEST > this.#numbers.length) {
      const more = new Float64Array(Math.max(INITIAL_LENGTH, 2 * this.#numbers.length));
      more.set(this.#numbers);
      this.#numbers = more;
    }
    const numbers = this.#numbers;
    numbers[at] = kind;
    numbers[at + 1] = a;
    numbers[at + 2] = b;
    numbers[at + 3] = c;
    numbers[at + 4] = d;
    numbers[at + 5] = e;
    numbers[at + 6] = f;
    numbers[at + 7] = g;
    numbers[at + 8] = h;
    numbers[at + 9] = i;
    this.#length = at + (ENTRY_LENGTHS[kind] ?? 1);
    this.#isRoutine &&= isRoutine(kind);
  }

  #writeSource(source: RequestAttributes | undefined): void {
    const from = this.#length - ATTRIBUTE_COUNT;
    for (let i = 0; i < ATTRIBUTE_COUNT; i += 1) this.#numbers[from + i] = source?.[i] ?? UNKNOWN;
  }
}

const ROUTINE = [SENT, RESPONDED, ENDED, ACCEPTED, TOKEN_RETURNED, TOKEN_UNUSED];

function isRoutine(kind: number): boolean {
  return ROUTINE.includes(kind);
}
