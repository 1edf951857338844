import type { Rejection } from '../../policy/rate/rejection.ts';
import type { QuotaOwner, Requester } from '../../policy/requester.ts';
import { ANYBODY } from '../../policy/requester.ts';
import type { Millis, PerSecond, Quota } from '../../policy/types.ts';

const GIVEN_BACK = 0;
const SENT = 1;
const ENDED = 2;
const ACCEPTED = 3;
const REJECTED = 4;
const FAILED = 5;
const QUOTA = 6;
const STOP = 7;
const REMEMBER = 8;
const ABANDON = 9;
const UNSPENT = 10;
const EPOCH = 11;
const QUOTA_SPENT = 12;
const QUOTA_DISOWNED = 13;

/** How many numbers each takes, its kind included. */
const LENGTHS: readonly number[] = [1, 3, 2, 4, 7, 5, 9, 2, 3, 1, 2, 2, 6, 3];

/** Which of them are times. */
const TIMES: readonly (readonly number[])[] = [
  [],
  [2],
  [1],
  [1, 3],
  [1, 6],
  [1, 4],
  [7, 8],
  [1],
  [2],
  [],
  [1],
  [],
  [1, 5],
  [2],
];

/** NaN where something is not known. */
const UNKNOWN = Number.NaN;

/** As a `HappeningLog` writes them: kinds, each followed by its numbers. */
export type Happenings = readonly number[] | Float64Array;

const WIDEST = Math.max(...LENGTHS);
const NOTHING = new Float64Array(0);
/** Numbers that there is room for at first: there may be a log for each client. After as many as these at once it begins anew. */
const FEW = 16;
const MANY = 8192;

/**
 * What happened at one limit, in order: numbers in one piece, so that what limits nothing costs no object a request, and what is told
 * of it to another process is copied as it is.
 */
export class HappeningLog {
  #numbers = NOTHING;
  #length = 0;

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

  accepted(sentAt: Millis, serial: number, now: Millis): void {
    this.#write(ACCEPTED, sentAt, serial, now);
  }

  /** @param rejection `among` is the serial */
  rejected({ sentAt, among, retryAfter, activeClients, overrun = false }: Rejection, now: Millis): void {
    this.#write(REJECTED, sentAt, among, retryAfter ?? UNKNOWN, activeClients, overrun ? 1 : 0, now);
  }

  failed(sentAt: Millis, now: Millis, retryAfter: Millis | undefined, overrun: boolean): void {
    this.#write(FAILED, sentAt, retryAfter ?? UNKNOWN, overrun ? 1 : 0, now);
  }

  quota({ remaining, limit, resetIn, window }: Quota, sentAt: Millis, now: Millis, requester = ANYBODY): void {
    const { credential, client } = requester;
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

  /** Writes as many numbers as the widest kind has; those that this one has not are written over by the next. */
  #write(kind: number, a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0): void {
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
    this.#length = at + (LENGTHS[kind] ?? 1);
  }
}

/** Who is told again what a log tells: the methods mean what those of a `Meter` do, with serials instead of numbers in flight. */
export interface Replayed {
  givenBack(): void;
  sent(serial: number, now: Millis): void;
  ended(now: Millis): void;
  accepted(sentAt: Millis, serial: number, now: Millis): void;
  rejected(rejection: Rejection, now: Millis): void;
  failed(sentAt: Millis, now: Millis, retryAfter: Millis | undefined, overrun: boolean): void;
  noteQuota(quota: Quota, sentAt: Millis, now: Millis, requester: Requester): void;
  resumeQuota(owner: QuotaOwner, now: Millis): void;
  disownQuota(isApart: boolean, now: Millis): void;
  stop(until: Millis): void;
  remember(accepted: PerSecond, now: Millis): void;
  abandonProbe(): void;
  unspent(slot: Millis): void;
  epoch(epoch: number): void;
}

/** The same, by a clock that is ahead by so much. */
export function shiftTimes(numbers: Happenings, by: Millis): Happenings {
  const shifted = numbers.slice();
  for (let i = 0; i < numbers.length; i += LENGTHS[numbers[i] ?? 0] ?? 1) {
    for (const place of TIMES[numbers[i] ?? 0] ?? []) shifted[i + place] = (numbers[i + place] ?? 0) + by;
  }
  return shifted;
}

/** @throws RangeError for what no `HappeningLog` has written */
export function replay(numbers: Happenings, to: Replayed): void {
  const at = (index: number): number => numbers[index] ?? UNKNOWN;
  const known = (index: number): number | undefined => (Number.isNaN(at(index)) ? undefined : at(index));
  for (let i = 0; i < numbers.length; i += LENGTHS[at(i)] ?? 1) {
    switch (numbers[i]) {
      case GIVEN_BACK:
        to.givenBack();
        break;
      case SENT:
        to.sent(at(i + 1), at(i + 2));
        break;
      case ENDED:
        to.ended(at(i + 1));
        break;
      case ACCEPTED:
        to.accepted(at(i + 1), at(i + 2), at(i + 3));
        break;
      case REJECTED: {
        const retryAfter = known(i + 3);
        const overrun = at(i + 5) === 1;
        to.rejected({ sentAt: at(i + 1), among: at(i + 2), retryAfter, activeClients: at(i + 4), overrun }, at(i + 6));
        break;
      }
      case FAILED:
        to.failed(at(i + 1), at(i + 4), known(i + 2), at(i + 3) === 1);
        break;
      case QUOTA: {
        const quota = { remaining: at(i + 1), limit: known(i + 2), resetIn: known(i + 3), window: known(i + 4) };
        to.noteQuota(quota, at(i + 7), at(i + 8), { credential: known(i + 5), client: known(i + 6) });
        break;
      }
      case QUOTA_SPENT: {
        const kind = at(i + 4);
        const how = { isCommon: kind % 2 === 1, isSpent: kind >= 2 };
        to.resumeQuota({ until: at(i + 1), credential: known(i + 2), client: known(i + 3), ...how }, at(i + 5));
        break;
      }
      case QUOTA_DISOWNED:
        to.disownQuota(at(i + 1) === 1, at(i + 2));
        break;
      case STOP:
        to.stop(at(i + 1));
        break;
      case REMEMBER:
        to.remember(at(i + 1), at(i + 2));
        break;
      case ABANDON:
        to.abandonProbe();
        break;
      case EPOCH:
        to.epoch(at(i + 1));
        break;
      case UNSPENT:
        to.unspent(at(i + 1));
        break;
      default:
        throw new RangeError(`nothing happens by the number ${numbers[i]}`);
    }
  }
}
