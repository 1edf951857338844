import type { Claimant } from '../policy/key-claims.ts';
import type { Clock, KeyRefusal, Millis, Outcome, Verdict } from '../policy/types.ts';
import { isThrottled } from '../policy/types.ts';
import type { Arrival } from './arrival.ts';
import type { Idempotency } from './idempotency.ts';
import { keyTtlOf, nameWrite } from './idempotency.ts';
import type { KeyBook } from './key-book.ts';

/** Who claims a key. */
export interface Claiming {
  /**
   * Called once, unless the claim is cancelled.
   * @param sentAt when the key was first sent in an exchange before, as far as is remembered
   * @param why it is not to be sent; undefined when it may be
   * @param isAnswered of an expired one: it is known what came of it
   */
  claimed(sentAt: Millis | undefined, why?: KeyRefusal, isAnswered?: boolean): void;
}

export interface KeyClaimParts {
  readonly keys: KeyBook;
  readonly clock: Clock;
  /** The write, as `nameWrite` tells it. */
  readonly write: string;
  readonly concurrent: Idempotency['concurrent'];
  /** How long the upstream remembers the key; undefined where that is not known. */
  readonly ttl: Millis | undefined;
}

/** The claim of one request to its key. */
export function claimOf(keys: KeyBook, arrival: Arrival, key: Arrival['key'], clock: Clock): KeyClaim {
  const { request, route } = arrival;
  const { concurrent } = route.target.idempotency;
  return new KeyClaim({
    keys,
    clock,
    write: nameWrite(arrival, key?.value ?? ''),
    concurrent,
    ttl: keyTtlOf(request, route),
  });
}

/** These speak of their own attempt, which was plainly not done, or of another that is at work: not of those before. */
const NO_WORD: ReadonlySet<number> = new Set([400, 401, 403, 404, 405, 408, 409, 413, 414, 415, 422, 425, 429, 431]);

/** Where it is not known how long keys live: after it, what comes with a key is taken for a new write. */
const ANY_LIFETIME: Millis = 24 * 60 * 60 * 1000;

/** After it nobody wonders any more what came of the write. */
function isLastWord(outcome: Outcome | undefined): boolean {
  if (outcome?.kind !== 'response' || outcome.status >= 500 || NO_WORD.has(outcome.status)) return false;
  return !outcome.hints.lock && !isThrottled(outcome.status, outcome.hints);
}

/** A request's claim to its idempotency key, from the time it asks until its verdict. */
export class KeyClaim implements Claimant {
  readonly #parts: KeyClaimParts;
  #claiming: Claiming | undefined;
  #timer: NodeJS.Timeout | undefined;
  #state: 'new' | 'waiting' | 'held' | 'over' = 'new';
  /** When the key was first sent, as far as is known. */
  #sentAt: Millis | undefined;
  /** It was sent before, in an exchange that is remembered. */
  #isKnown = false;
  /** What the write goes by where it is remembered; made when it is needed. */
  #digest: string | undefined;

  constructor(parts: KeyClaimParts) {
    this.#parts = parts;
  }

  /** Once. Waits until the deadline at most. */
  begin(claiming: Claiming, deadline: Millis): void {
    this.#claiming = claiming;
    const { keys, write, concurrent, clock } = this.#parts;
    if (concurrent === 'pass') return this.#look();
    if (keys.claims.take(write)) return this.onClaimed();
    if (concurrent === 'refuse' || !keys.claims.wait(write, this)) return claiming.claimed(undefined, 'key_in_use');
    this.#state = 'waiting';
    this.#timer = setTimeout(() => this.#onLate(), Math.max(0, Math.ceil(deadline - clock.now())));
  }

  onClaimed(): void {
    clearTimeout(this.#timer);
    this.#state = 'held';
    this.#look();
  }

  /** An attempt leaves. */
  sending(now: Millis): void {
    this.#sentAt ??= now;
  }

  /** The exchange waits for it no longer. */
  cancel(): void {
    if (this.#state === 'waiting') this.#leave();
  }

  /** The exchange is over: the key is free, and what is known of its write is kept or forgotten. */
  end(verdict: Verdict, outcome: Outcome | undefined, isHeard: boolean): void {
    this.cancel();
    if (verdict.attempts > 0) this.#remember(verdict, outcome, isHeard);
    if (this.#state === 'held') this.#parts.keys.claims.release(this.#parts.write);
    this.#state = 'over';
  }

  /** The answer did not reach its client as a whole: it does not know. */
  unheard(): void {
    if (this.#sentAt !== undefined) this.#parts.keys.unsettled.add(this.#key(), this.#sentAt);
  }

  #remember(verdict: Verdict, outcome: Outcome | undefined, isHeard: boolean): void {
    const isOpen = verdict.kind === 'unknown' || verdict.kind === 'gone';
    if (isOpen || (verdict.kind === 'forward' && (verdict.unknown || !isHeard))) return this.unheard();
    if (verdict.kind === 'forward' && isLastWord(outcome)) this.#settle();
  }

  /** Where nobody says how long keys live, one that was open is remembered all the same: its client may not have heard. */
  #settle(): void {
    const { keys, ttl } = this.#parts;
    if (this.#sentAt === undefined || (ttl === undefined && !this.#isKnown)) return;
    keys.unsettled.settle(this.#key());
    keys.settled.add(this.#key(), this.#sentAt);
  }

  /** Whether the upstream still knows the key. */
  #look(): void {
    const { keys, ttl, clock } = this.#parts;
    const openSince = keys.unsettled.isEmpty ? undefined : keys.unsettled.sentAt(this.#key());
    const sentAt = openSince ?? (keys.settled.isEmpty ? undefined : keys.settled.sentAt(this.#key()));
    const isOld = sentAt !== undefined && clock.now() > sentAt + (ttl ?? ANY_LIFETIME);
    if (isOld && ttl !== undefined) return this.#claiming?.claimed(undefined, 'key_expired', openSince === undefined);
    if (isOld) keys.unsettled.settle(this.#key());
    else this.#sentAt = sentAt;
    this.#isKnown = this.#sentAt !== undefined;
    this.#claiming?.claimed(this.#sentAt);
  }

  #key(): string {
    this.#digest ??= this.#parts.keys.digest(this.#parts.write);
    return this.#digest;
  }

  #leave(): void {
    clearTimeout(this.#timer);
    this.#state = 'over';
    this.#parts.keys.claims.leave(this.#parts.write, this);
  }

  #onLate(): void {
    this.#leave();
    this.#claiming?.claimed(undefined, 'key_in_use');
  }
}
