import type { Clock, Millis } from '../scalars.ts';
import { hasCredential } from './credential-list.ts';
import type { KeyClaimant } from './key-claims.ts';
import type { KeyClaim, KeyClaimEnd, KeyClaimListener, KeyClaimRequest } from './key-store.ts';
import type { KeyedWrite } from './keyed-write.ts';
import { isAnsweredFor, isUnresolved, UNKNOWN_ENDPOINT } from './keyed-write.ts';
import type { ClaimRefusalReason, KeyRecord } from './key-record.ts';
import type { KeyRegistry } from './key-registry.ts';
import type { WriteOutcome } from './write-outcome.ts';

export interface RegistryKeyClaimOptions {
  readonly keys: KeyRegistry;
  readonly clock: Clock;
  /** Calls `run` once after this time. @returns a function that cancels it */
  readonly schedule: (delay: Millis, run: () => void) => () => void;
  readonly request: KeyClaimRequest;
  /** From the grant on, the write counts as sent. */
  readonly countsAsSent: boolean;
}

/** A claim to a key of the registry of this process. */
export class RegistryKeyClaim implements KeyClaim, KeyClaimant {
  readonly fairnessKey: string;
  readonly client: string;
  readonly #options: RegistryKeyClaimOptions;
  #listener: KeyClaimListener | undefined;
  #cancelTimer: (() => void) | undefined;
  /** `shared`: several requests may use the key at a time (`concurrent: pass`). */
  #state: 'new' | 'waiting' | 'held' | 'shared' | 'over' = 'new';
  #hasWaited = false;
  /** Defined while the claim is waiting, held or shared. */
  #write: KeyedWrite | undefined;
  /** What was known before this exchange. */
  #record: KeyRecord | undefined;
  #firstSentAt: Millis | undefined;
  /** Of the write, at the end of the claim. */
  #endpoint: string | undefined;
  /** The response to the write was forwarded, and has not been cut so far. */
  #isDelivered = false;
  /** The write, while that response is being sent. */
  #answered: KeyedWrite | undefined;
  /** That response is final: it settles whether the write took effect. */
  #isFinal = false;
  /** An attempt may have taken effect, and no later one was answered. */
  #mayHaveTakenEffect = false;
  /** Bytes of an attempt may have reached the upstream. */
  #hasReached = false;
  /** What the last attempt says about the write. */
  #last: WriteOutcome | undefined;

  constructor(options: RegistryKeyClaimOptions) {
    this.#options = options;
    ({ fairnessKey: this.fairnessKey, client: this.client } = options.request.place);
  }

  get endpoint(): string | undefined {
    return this.#write?.endpoint;
  }

  /** Whether it has the key that the other claim has, or had. */
  isHolderOf(other: RegistryKeyClaim): boolean {
    return this.#hasKey && this.#options.request.identity.name === other.#options.request.identity.name;
  }

  begin(listener: KeyClaimListener, deadline: Millis): void {
    this.#listener = listener;
    if (this.#hasKey) return this.#grant();
    const { keys, clock, request } = this.#options;
    const { identity, concurrent } = request;
    const write = keys.join(identity);
    this.#write = write;
    if (concurrent === 'pass') {
      this.#state = 'shared';
      return this.#grant();
    }
    if (keys.claims.tryAcquire(write)) return this.onClaimed();
    const isQueued = concurrent === 'wait' && keys.claims.enqueue(write, this);
    if (!isQueued) return this.#refuse(write, 'key_in_use');
    this.#state = 'waiting';
    this.#hasWaited = true;
    this.#cancelTimer = this.#options.schedule(Math.max(0, deadline - clock.now()), () =>
      this.#refuse(write, 'key_in_use'),
    );
  }

  onClaimed(): void {
    this.#cancelTimer?.();
    this.#state = 'held';
    this.#grant();
  }

  /** @param endpoint undefined if not chosen yet */
  onSend(endpoint: string | undefined, now: Millis = this.#options.clock.now()): void {
    const { keys } = this.#options;
    const write = this.#write;
    if (write === undefined) return;
    if (this.#firstSentAt === undefined) {
      this.#firstSentAt = now;
      keys.onSent(write, this.#firstSentAt, endpoint);
      return;
    }
    if (!this.#hasReached) this.#firstSentAt = now;
    // A retry after a response, as after some card declines: the response is stored for the attempts before it.
    if (this.#last === 'answered') this.#store(write, true);
    // The earlier attempts did nothing at their endpoints.
    const isFirst = write.state === 'new' && write.sentCount === 1 && !this.#mayHaveTakenEffect;
    if (!isFirst && write.endpoint !== undefined) return;
    keys.onSentAgain(write, endpoint, isFirst && !this.#hasReached ? this.#firstSentAt : undefined);
  }

  get #hasKey(): boolean {
    return this.#state === 'held' || this.#state === 'shared';
  }

  get hasWrite(): boolean {
    return this.#write !== undefined;
  }

  recordOutcome(meaning: WriteOutcome): void {
    if (meaning !== 'nothing_sent') this.#hasReached = true;
    if (meaning === 'answered') this.#mayHaveTakenEffect = false;
    else this.#mayHaveTakenEffect ||= meaning === 'may_have_happened';
    this.#last = meaning;
  }

  lookUp(onRecord: (record: KeyRecord | undefined) => void): void {
    onRecord(this.#write && this.#lookUp(this.#write));
  }

  #lookUp(write: KeyedWrite): KeyRecord | undefined {
    const { firstSentAt, sentCount } = write;
    const isSentByOthers = sentCount > (this.#firstSentAt === undefined ? 0 : 1);
    const known = this.#recall(write);
    const isOpenByOthers = isSentByOthers && known?.isFinal !== true;
    return isOpenByOthers ? { firstSentAt, isAnswered: false } : known;
  }

  stopWaiting(): void {
    const write = this.#write;
    if (this.#state === 'waiting' && write !== undefined) this.#refuse(write, 'draining');
  }

  release(end: KeyClaimEnd): void {
    const write = this.#write;
    if (write === undefined) return;
    const { keys } = this.#options;
    if (this.#state === 'waiting') this.#cancelWait(write);
    if (this.#firstSentAt !== undefined) {
      this.#recordEnd(write, end);
      keys.onAttemptEnd(write);
    }
    if (this.#state === 'held') keys.claims.release(write);
    this.#leave(write);
  }

  onUndelivered(): void {
    if (!this.#isDelivered) return;
    this.#isDelivered = false;
    const { keys, request } = this.#options;
    const write = keys.join(request.identity);
    write.endpoint ??= this.#endpoint; // if it was forgotten meanwhile
    if (write.state !== 'answered') this.#store(write, false);
    else keys.onUndelivered(write, this.#isFinal, request.identity.credential);
    keys.leave(write);
  }

  close(): void {
    if (this.#answered !== undefined) this.#options.keys.onResponseEnd(this.#answered, this.#isDelivered);
    this.#answered = undefined;
  }

  /** The process of the request has ended: an attempt may have taken effect, or the response may have been cut. */
  abandon(): void {
    if (this.#hasKey) {
      if (this.#write !== undefined) this.#write.endpoint ??= UNKNOWN_ENDPOINT;
      return this.release({ kind: 'unknown' });
    }
    this.release({ kind: 'other' });
    this.onUndelivered();
    this.close();
  }

  #recordEnd(write: KeyedWrite, end: KeyClaimEnd): void {
    if (end.kind === 'answered' && end.isDelivered) {
      this.#isDelivered = true;
      this.#endpoint = write.endpoint;
      this.#isFinal = end.isFinal;
      this.#answered = write;
      this.#options.keys.onResponse(write);
      this.#store(write, true, this.#isFinal);
      return;
    }
    // Answered but not delivered, or unresolved by what this exchange sent.
    if (end.kind !== 'other' || this.#mayHaveTakenEffect) this.#store(write, false);
    else if (this.#last === 'answered') this.#store(write, true); // the retry that followed was not made
  }

  #store(write: KeyedWrite, isAnswered: boolean, isFinal = false): void {
    if (this.#firstSentAt === undefined) return;
    const firstSentAt = this.#record?.firstSentAt ?? this.#firstSentAt;
    const { keys, request } = this.#options;
    keys.record(write, { firstSentAt, isAnswered, isFinal }, request.identity.credential);
  }

  #grant(): void {
    const write = this.#write;
    if (write === undefined) return;
    const { countsAsSent, request } = this.#options;
    if (countsAsSent && this.#firstSentAt === undefined) this.onSend(request.endpoint);
    this.#record = this.#lookUp(write);
    const { journal } = this.#options.keys;
    if (journal === undefined) return this.#listener?.onClaimed(this.#record, this.#hasWaited);
    journal.whenStored((isStored) => this.#onStored(write, isStored));
  }

  #onStored(write: KeyedWrite, isStored: boolean): void {
    if (this.#write !== write) return; // released meanwhile
    if (isStored) return this.#listener?.onClaimed(this.#record, this.#hasWaited);
    const mayBeDone = this.#record?.isAnswered === false;
    this.release({ kind: 'other' });
    this.#listener?.onClaimRefused('key_store_lost', mayBeDone);
  }

  #recall(write: KeyedWrite): KeyRecord | undefined {
    const { keys, clock, request } = this.#options;
    const record = keys.recall(write, request.ttl, clock.now());
    if (record?.isAnswered !== true) return record;
    const { credential } = request.identity;
    const isFinal = hasCredential(write.finalFor, credential);
    return { ...record, isAnswered: isAnsweredFor(write, credential), isFinal };
  }

  #refuse(write: KeyedWrite, why: ClaimRefusalReason): void {
    if (this.#state === 'waiting') this.#cancelWait(write);
    const mayBeDone = isUnresolved(write);
    this.#leave(write);
    this.#listener?.onClaimRefused(why, mayBeDone);
  }

  #cancelWait(write: KeyedWrite): void {
    this.#cancelTimer?.();
    this.#options.keys.claims.cancelWait(write, this);
  }

  #leave(write: KeyedWrite): void {
    this.#state = 'over';
    this.#write = undefined;
    this.#options.keys.leave(write);
  }
}
