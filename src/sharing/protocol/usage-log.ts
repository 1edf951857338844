import type { Block } from '../../core/rate/breaker/active-block.ts';
import { BLOCK_CAUSES } from '../../core/rate/breaker/active-block.ts';
import { PASSES_AFTER_REJECTION } from '../../core/rate/breaker/rejected-part.ts';
import type { Failure, Rejection } from '../../core/rate/failed-send.ts';
import type { QuotaOwner } from '../../core/quota/requester.ts';
import { ANYBODY } from '../../core/quota/requester.ts';
import type { Source } from '../../core/rate/breaker/request-attributes.ts';
import { SOURCE_NUMBERS } from '../../core/rate/breaker/request-attributes.ts';
import type { Millis, PerSecond, Quota } from '../../core/exchange/attempt-outcome.ts';
import type { Happenings } from './usage-entries.ts';
import {
  GIVEN_BACK,
  SENT,
  ENDED,
  ACCEPTED,
  REJECTED,
  FAILED,
  QUOTA,
  STOP,
  REMEMBER,
  ABANDON,
  UNSPENT,
  EPOCH,
  QUOTA_SPENT,
  QUOTA_DISOWNED,
  ACCEPTED_OF,
  PROBED,
  PASSED_BY,
  BLOCKED,
  LENGTHS,
  UNKNOWN,
} from './usage-entries.ts';

const WIDEST = Math.max(...LENGTHS);
const NOTHING = new Float64Array(0);
/** Numbers that there is room for at first: there may be a log for each client. After as many as these at once it begins anew. */
const FEW = 16;
const MANY = 8192;
/** After a failure, so many of the next accepted requests are told with their sources; after a rejection, as many as are looked at. */
const TOLD_OF = 64;

/**
 * What happened at one limit, in order: numbers in one piece, so that what limits nothing costs no object a request, and what is told
 * of it to another process is copied as it is.
 */
export class HappeningLog {
  #numbers = NOTHING;
  #length = 0;
  /** So many of what is accepted next are told with their sources. */
  #toldOf = 0;

  get isEmpty(): boolean {
    return this.#length === 0;
  }

  /** All so far; it begins anew. */
  take(): Happenings {
    if (this.#length === 0) return NOTHING;
    const taken = this.#numbers.slice(0, this.#length);
    this.#length = 0;
    if (this.#numbers.length > MANY) this.#numbers = NOTHING;
    return taken;
  }

  givenBack(): void {
    this.#write(GIVEN_BACK);
  }

  sent(serial: number, now: Millis): void {
    this.#write(SENT, serial, now);
  }

  ended(now: Millis): void {
    this.#write(ENDED, now);
  }

  /** Something has failed lately: where what passes comes from is to be told too. */
  get isTroubled(): boolean {
    return this.#toldOf > 0;
  }

  accepted(sentAt: Millis, serial: number, now: Millis, source?: Source): void {
    this.#toldOf = Math.max(0, this.#toldOf - 1);
    if (source === undefined) return this.#write(ACCEPTED, sentAt, serial, now);
    this.#write(ACCEPTED_OF, sentAt, serial, now);
    this.#writeSource(source);
  }

  /** @param rejection `among` is the serial */
  rejected({ sentAt, among, retryAfter, activeClients, overrun = false, source }: Rejection, now: Millis): void {
    this.#toldOf = Math.max(this.#toldOf, PASSES_AFTER_REJECTION);
    this.#write(REJECTED, sentAt, among, retryAfter ?? UNKNOWN, activeClients, overrun ? 1 : 0, now);
    this.#writeSource(source);
  }

  failed({ sentAt, retryAfter, overrun = false, source }: Failure, now: Millis): void {
    this.#toldOf = TOLD_OF;
    this.#write(FAILED, sentAt, retryAfter ?? UNKNOWN, overrun ? 1 : 0, now);
    this.#writeSource(source);
  }

  /** What is sent next is the probe of what is blocked while others pass. */
  probed(now: Millis): void {
    this.#write(PROBED, now);
  }

  /** A request is to pass that the block is not about. */
  passedBy(now: Millis): void {
    this.#write(PASSED_BY, now);
  }

  blocked({ cause, scope, probeAt, asked, askedUntil }: Block, now: Millis): void {
    this.#write(BLOCKED, BLOCK_CAUSES.indexOf(cause), probeAt, asked, askedUntil, now);
    this.#writeSource(scope);
  }

  quota({ remaining, limit, resetIn, window }: Quota, sentAt: Millis, now: Millis, requester = ANYBODY): void {
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

  stop(until: Millis): void {
    this.#write(STOP, until);
  }

  remember(accepted: PerSecond, now: Millis): void {
    this.#write(REMEMBER, accepted, now);
  }

  abandonProbe(): void {
    this.#write(ABANDON);
  }

  /** What follows was done in the knowledge of this epoch. */
  epoch(epoch: number): void {
    this.#write(EPOCH, epoch);
  }

  /** A token was not taken. @param slot its time */
  unspent(slot: Millis): void {
    this.#write(UNSPENT, slot);
  }

  /** Writes ten numbers, whatever the kind: those beyond its own are written over, by its source or by the next. */
  #write(kind: number, a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0, i = 0): void {
    const at = this.#length;
    if (at + WIDEST > this.#numbers.length) {
      const more = new Float64Array(Math.max(FEW, 2 * this.#numbers.length));
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
    this.#length = at + (LENGTHS[kind] ?? 1);
  }

  #writeSource(source: Source | undefined): void {
    const from = this.#length - SOURCE_NUMBERS;
    for (let i = 0; i < SOURCE_NUMBERS; i += 1) this.#numbers[from + i] = source?.[i] ?? UNKNOWN;
  }
}
