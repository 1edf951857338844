import type { Place } from '../../core/admission/queue-occupancy.ts';
import { includes } from '../../core/idempotency/credential-list.ts';
import type { Claimant } from '../../core/idempotency/key-claims.ts';
import type { KeyRegistry } from '../../core/idempotency/key-registry.ts';
import type { KeyedWrite, WriteIdentity } from '../../core/idempotency/keyed-write.ts';
import { isAnsweredFor, isOpen } from '../../core/idempotency/keyed-write.ts';
import type { Clock, KeyRecord, Millis, Outcome, RetryPolicy, Verdict } from '../../core/exchange/attempt-outcome.ts';
import type { WriteOutcome } from '../../core/idempotency/write-outcome.ts';
import { classifyWrite, isDoneBy } from '../../core/idempotency/write-outcome.ts';
import type { Idempotency } from './idempotency-key.ts';

/** Who claims a key. One of the two is called once, unless the claim is cancelled. */
export interface Claiming {
  claimed(record: KeyRecord | undefined): void;
  /** @param mayBeDone by the request that has the key */
  unclaimed(why: 'key_in_use', mayBeDone: boolean): void;
}

export interface KeyClaimParts {
  readonly keys: KeyRegistry;
  readonly clock: Clock;
  /** Runs something once, after this time. @returns what stops it */
  readonly schedule: (delay: Millis, run: () => void) => () => void;
  readonly identity: WriteIdentity;
  /** Whose place it is while it waits. */
  readonly place: Place;
  readonly concurrent: Idempotency['concurrent'];
  /** How long the upstream remembers the key; undefined where that is not known. */
  readonly ttl: Millis | undefined;
  readonly policy: RetryPolicy;
  /** Each of several endpoints knows its own keys, and the write may go to any of them by its method. */
  readonly mayAskOthers?: boolean;
}

/** A request's claim to its idempotency key, from the time it asks until its verdict. */
export class KeyClaim implements Claimant {
  readonly #parts: KeyClaimParts;
  #claiming: Claiming | undefined;
  #stopTimer: (() => void) | undefined;
  #state: 'new' | 'waiting' | 'held' | 'shared' | 'over' = 'new';
  /** Entered while the claim lasts. */
  #write: KeyedWrite | undefined;
  /** What was known before this exchange. */
  #record: KeyRecord | undefined;
  #firstSentAt: Millis | undefined;
  #endpoint: string | undefined;
  /** By others, as far as is known. */
  #sentTo: string | undefined;
  #isAnswered = false;
  /** That answer says for good what came of it. */
  #isDone = false;
  /** An attempt may have taken effect, and none has been answered since. */
  #isOpen = false;
  /** An attempt was sent, and not only begun. */
  #hasReached = false;
  /** What the last attempt says of the write. */
  #last: WriteOutcome | undefined;

  constructor(parts: KeyClaimParts) {
    this.#parts = parts;
  }

  get holder(): string {
    return this.#parts.place.holder;
  }

  get client(): string {
    return this.#parts.place.client;
  }

  /** Where its write was sent by others; undefined where that is not known. Also where there is one endpoint: there may have been another. */
  get endpoint(): string | undefined {
    return this.#sentTo;
  }

  /** Waits until the deadline at most. Once it has the key, it keeps it, however often it asks. */
  begin(claiming: Claiming, deadline: Millis): void {
    this.#claiming = claiming;
    if (this.#state === 'held' || this.#state === 'shared') return this.#tell();
    const { keys, identity, concurrent, clock } = this.#parts;
    const write = keys.enter(identity);
    this.#write = write;
    if (concurrent === 'pass') {
      this.#state = 'shared';
      return this.#tell();
    }
    if (keys.claims.take(write)) return this.onClaimed();
    if (concurrent === 'refuse' || !keys.claims.wait(write, this)) return this.#turnedAway();
    this.#state = 'waiting';
    this.#stopTimer = this.#parts.schedule(Math.max(0, deadline - clock.now()), () => this.#onLate(write));
  }

  onClaimed(): void {
    this.#stopTimer?.();
    this.#state = 'held';
    this.#tell();
  }

  /** An attempt leaves for this endpoint. */
  sending(endpoint: string): void {
    const { keys, clock } = this.#parts;
    const write = this.#write;
    if (write === undefined) return;
    if (this.#firstSentAt === undefined) {
      this.#firstSentAt = clock.now();
      keys.sent(write, this.#firstSentAt, endpoint);
      return;
    }
    if (!this.#hasReached) this.#firstSentAt = clock.now();
    // An answer that is asked for again, as some refusals of cards are, answers what was sent before it.
    if (this.#last === 'answered') {
      this.#endpoint = write.endpoint;
      this.#keep(write, true);
    }
    if (write.state !== 'new' || write.sent !== 1) return;
    write.endpoint = endpoint; // what was before did not stay there
    if (!this.#hasReached) write.firstSentAt = this.#firstSentAt;
  }

  /** It takes part in its write: what is known of it is known here. */
  get isOn(): boolean {
    return this.#write !== undefined;
  }

  /** What an attempt came to. */
  note(outcome: Outcome): void {
    const meaning = classifyWrite(outcome, this.#parts.policy.notProcessed);
    if (meaning !== 'nothing_sent') this.#hasReached = true;
    if (meaning === 'answered') this.#isOpen = false;
    else this.#isOpen ||= meaning === 'may_have_happened';
    this.#last = meaning;
  }

  /** What others know of the write by now, or may have done by what they have sent. */
  lookUp(): KeyRecord | undefined {
    const write = this.#write;
    if (write === undefined) return undefined;
    const { firstSentAt, endpoint, sent } = write;
    const isSentByOthers = sent > (this.#firstSentAt === undefined ? 0 : 1);
    const known = this.#recall(write);
    const isOpenByOthers = isSentByOthers && known?.isDone !== true;
    const record = isOpenByOthers ? { firstSentAt, endpoint, isAnswered: false } : known;
    this.#sentTo = record?.endpoint;
    return record;
  }

  /** The exchange waits for it no longer. @returns whether the write may have been done by the request that has the key */
  cancel(): boolean {
    const write = this.#write;
    if (this.#state !== 'waiting' || write === undefined) return false;
    const mayBeDone = isOpen(write);
    this.#stopWaiting(write);
    return mayBeDone;
  }

  /**
   * The exchange is over: the key is free, and what is known of its write is kept.
   * @param endpoint that has been sent to last
   */
  end(verdict: Verdict, outcome: Outcome | undefined, isHeard: boolean, endpoint: string | undefined): void {
    this.cancel();
    const { keys } = this.#parts;
    const write = this.#write;
    if (write === undefined) return;
    if (this.#firstSentAt !== undefined) {
      this.#endpoint = endpoint;
      this.#remember(write, verdict, outcome, isHeard);
      keys.over(write);
    }
    if (this.#state === 'held') keys.claims.release(write);
    this.#leave(write);
  }

  /** The answer did not reach its client as a whole: it does not know. */
  unheard(): void {
    if (!this.#isAnswered) return;
    const { keys, identity } = this.#parts;
    const write = keys.enter(identity);
    if (write.state !== 'answered') this.#keep(write, false);
    else keys.unheard(write, this.#isDone, identity.credential);
    keys.leave(write);
  }

  #remember(write: KeyedWrite, verdict: Verdict, outcome: Outcome | undefined, isHeard: boolean): void {
    const { mayAskOthers = false, policy } = this.#parts;
    if (verdict.kind === 'forward' && outcome !== undefined) {
      this.#isAnswered = classifyWrite(outcome, policy.notProcessed) === 'answered';
      if (this.#isAnswered && isHeard) {
        this.#isDone = isDoneBy(outcome, mayAskOthers);
        this.#keep(write, true, this.#isDone);
        return;
      }
    }
    // Answered to nobody; or left open, by what it has sent itself.
    if (this.#isAnswered || this.#isOpen || (verdict.kind === 'gone' && verdict.unknown)) this.#keep(write, false);
  }

  #keep(write: KeyedWrite, isAnswered: boolean, isDone = false): void {
    if (this.#firstSentAt === undefined) return;
    const firstSentAt = this.#record?.firstSentAt ?? this.#firstSentAt;
    const endpoint = this.#record === undefined ? this.#endpoint : this.#record.endpoint;
    const { keys, identity } = this.#parts;
    keys.keep(write, { firstSentAt, isAnswered, isDone, endpoint }, identity.credential);
  }

  #tell(): void {
    this.#record = this.lookUp();
    this.#claiming?.claimed(this.#record);
  }

  #recall(write: KeyedWrite): KeyRecord | undefined {
    const { keys, ttl, clock, identity } = this.#parts;
    const record = keys.recall(write, ttl, clock.now());
    if (record?.isAnswered !== true) return record;
    const isAnswered = isAnsweredFor(write, identity.credential);
    return { ...record, isAnswered, isDone: includes(write.doneFor, identity.credential) };
  }

  #turnedAway(): void {
    const write = this.#write;
    if (write === undefined) return;
    const mayBeDone = isOpen(write);
    this.#leave(write);
    this.#claiming?.unclaimed('key_in_use', mayBeDone);
  }

  #onLate(write: KeyedWrite): void {
    const mayBeDone = isOpen(write);
    this.#stopWaiting(write);
    this.#claiming?.unclaimed('key_in_use', mayBeDone);
  }

  #stopWaiting(write: KeyedWrite): void {
    this.#stopTimer?.();
    this.#parts.keys.claims.leave(write, this);
    this.#leave(write);
  }

  #leave(write: KeyedWrite): void {
    this.#state = 'over';
    this.#write = undefined;
    this.#parts.keys.leave(write);
  }
}
