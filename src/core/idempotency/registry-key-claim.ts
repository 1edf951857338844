import type { Millis } from '../scalars.ts';
import { hasCredential } from './credential-list.ts';
import type { ClaimProgress } from './claim-progress.ts';
import { newClaimProgress } from './claim-progress.ts';
import type { KeyClaimant } from './key-claims.ts';
import type { KeyClaim, KeyClaimEnd, KeyClaimListener } from './key-store.ts';
import type { KeyedWrite } from './keyed-write.ts';
import { isAnsweredFor, isUnresolved, UNKNOWN_ENDPOINT } from './keyed-write.ts';
import type { ClaimRefusalReason, KeyRecord } from './key-record.ts';
import type { RegistryKeyClaimOptions, StoredClaim } from './registry-key-claim-options.ts';
import type { WriteOutcome } from './write-outcome.ts';

/** A claim to a key of the registry of this process. */
export class RegistryKeyClaim implements KeyClaim, KeyClaimant {
  readonly fairnessKey: string;
  readonly client: string;
  readonly #options: RegistryKeyClaimOptions;
  #listener: KeyClaimListener | undefined;
  #cancelTimer: (() => void) | undefined;
  readonly #progress: ClaimProgress;
  #hasWaited = false;
  /** Defined while the claim is waiting, held or shared. */
  #write: KeyedWrite | undefined;
  /** The write, while a response to it is being sent. */
  #answered: KeyedWrite | undefined;

  constructor(options: RegistryKeyClaimOptions) {
    this.#options = options;
    const { request, resumed } = options;
    this.#progress = resumed?.progress ?? newClaimProgress();
    if (resumed !== undefined) this.#resume(resumed.write);
    ({ fairnessKey: this.fairnessKey, client: this.client } = request.place);
  }

  get endpoint(): string | undefined {
    return this.#write?.endpoint;
  }

  /** What is to be stored of the claim; undefined if nothing more can come of it. */
  get stored(): StoredClaim | undefined {
    const write = this.#hasKey ? this.#write : this.#answered;
    return write && { write, progress: this.#progress };
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
      this.#progress.state = 'shared';
      return this.#grant();
    }
    if (keys.claims.tryAcquire(write)) return this.onClaimed();
    const isQueued = concurrent === 'wait' && keys.claims.enqueue(write, this);
    if (!isQueued) return this.#refuse(write, 'key_in_use');
    this.#progress.state = 'waiting';
    this.#hasWaited = true;
    this.#cancelTimer = this.#options.schedule(Math.max(0, deadline - clock.now()), () =>
      this.#refuse(write, 'key_in_use'),
    );
  }

  onClaimed(): void {
    this.#cancelTimer?.();
    this.#progress.state = 'held';
    this.#grant();
  }

  /** @param endpoint undefined if not chosen yet */
  onSend(endpoint: string | undefined, now: Millis = this.#options.clock.now()): void {
    const { keys } = this.#options;
    const write = this.#write;
    if (write === undefined) return;
    if (this.#progress.firstSentAt === undefined) {
      this.#progress.firstSentAt = now;
      keys.onSent(write, this.#progress.firstSentAt, endpoint);
      return;
    }
    if (!this.#progress.hasReached) this.#progress.firstSentAt = now;
    // A retry after a response, as after some card declines: the response is stored for the attempts before it.
    if (this.#progress.last === 'answered') this.#store(write, true);
    // The earlier attempts did nothing at their endpoints.
    const isFirst = write.state === 'new' && write.sentCount === 1 && !this.#progress.mayHaveTakenEffect;
    if (!isFirst && write.endpoint !== undefined) return;
    keys.onSentAgain(write, endpoint, isFirst && !this.#progress.hasReached ? this.#progress.firstSentAt : undefined);
  }

  get #hasKey(): boolean {
    return this.#progress.state === 'held' || this.#progress.state === 'shared';
  }

  get hasWrite(): boolean {
    return this.#write !== undefined;
  }

  recordOutcome(meaning: WriteOutcome): void {
    if (meaning !== 'nothing_sent') this.#progress.hasReached = true;
    if (meaning === 'answered') this.#progress.mayHaveTakenEffect = false;
    else this.#progress.mayHaveTakenEffect ||= meaning === 'may_have_happened';
    this.#progress.last = meaning;
  }

  lookUp(onRecord: (record: KeyRecord | undefined) => void): void {
    onRecord(this.#write && this.#lookUp(this.#write));
  }

  #lookUp(write: KeyedWrite): KeyRecord | undefined {
    const { firstSentAt, sentCount } = write;
    const isSentByOthers = sentCount > (this.#progress.firstSentAt === undefined ? 0 : 1);
    const known = this.#recall(write);
    const isOpenByOthers = isSentByOthers && known?.isFinal !== true;
    return isOpenByOthers ? { firstSentAt, isAnswered: false } : known;
  }

  stopWaiting(): void {
    const write = this.#write;
    if (this.#progress.state === 'waiting' && write !== undefined) this.#refuse(write, 'draining');
  }

  release(end: KeyClaimEnd): void {
    const write = this.#write;
    if (write === undefined) return;
    const { keys } = this.#options;
    if (this.#progress.state === 'waiting') this.#cancelWait(write);
    if (this.#progress.firstSentAt !== undefined) {
      this.#recordEnd(write, end);
      keys.onAttemptEnd(write);
    }
    if (this.#progress.state === 'held') keys.claims.release(write);
    this.#leave(write);
  }

  onUndelivered(): void {
    if (!this.#progress.isDelivered) return;
    this.#progress.isDelivered = false;
    const { keys, request } = this.#options;
    const write = keys.join(request.identity);
    write.endpoint ??= this.#progress.endpoint; // if it was forgotten meanwhile
    if (write.state !== 'answered') this.#store(write, false);
    else keys.onUndelivered(write, this.#progress.isFinal, request.identity.credential);
    keys.leave(write);
  }

  close(): void {
    if (this.#answered !== undefined) this.#options.keys.onResponseEnd(this.#answered, this.#progress.isDelivered);
    this.#answered = undefined;
    this.#progress.isResponding = false;
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

  #resume(write: KeyedWrite): void {
    if (this.#progress.isResponding) {
      this.#answered = write;
      return this.#options.keys.onResponse(write);
    }
    this.#write = write;
    write.requestCount += 1;
    if (this.#progress.firstSentAt !== undefined) write.sentCount += 1;
    if (this.#progress.state === 'held') this.#options.keys.claims.tryAcquire(write);
  }

  #recordEnd(write: KeyedWrite, end: KeyClaimEnd): void {
    if (end.kind === 'answered' && end.isDelivered) {
      this.#progress.isDelivered = true;
      this.#progress.endpoint = write.endpoint;
      this.#progress.isFinal = end.isFinal;
      this.#answered = write;
      this.#progress.isResponding = true;
      this.#options.keys.onResponse(write);
      this.#store(write, true, this.#progress.isFinal);
      return;
    }
    // Answered but not delivered, or unresolved by what this exchange sent.
    if (end.kind !== 'other' || this.#progress.mayHaveTakenEffect) this.#store(write, false);
    else if (this.#progress.last === 'answered') this.#store(write, true); // the retry that followed was not made
  }

  #store(write: KeyedWrite, isAnswered: boolean, isFinal = false): void {
    if (this.#progress.firstSentAt === undefined) return;
    const firstSentAt = this.#progress.record?.firstSentAt ?? this.#progress.firstSentAt;
    const { keys, request } = this.#options;
    keys.record(write, { firstSentAt, isAnswered, isFinal }, request.identity.credential);
  }

  #grant(): void {
    const write = this.#write;
    if (write === undefined) return;
    const { countsAsSent, request } = this.#options;
    if (countsAsSent && this.#progress.firstSentAt === undefined) this.onSend(request.endpoint);
    this.#progress.record = this.#lookUp(write);
    const { journal } = this.#options.keys;
    if (journal === undefined) return this.#listener?.onClaimed(this.#progress.record, this.#hasWaited);
    journal.whenStored((isStored) => this.#onStored(write, isStored));
  }

  #onStored(write: KeyedWrite, isStored: boolean): void {
    if (this.#write !== write) return; // released meanwhile
    if (isStored) return this.#listener?.onClaimed(this.#progress.record, this.#hasWaited);
    const mayBeDone = this.#progress.record?.isAnswered === false;
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
    if (this.#progress.state === 'waiting') this.#cancelWait(write);
    const mayBeDone = isUnresolved(write);
    this.#leave(write);
    this.#listener?.onClaimRefused(why, mayBeDone);
  }

  #cancelWait(write: KeyedWrite): void {
    this.#cancelTimer?.();
    this.#options.keys.claims.cancelWait(write, this);
  }

  #leave(write: KeyedWrite): void {
    this.#progress.state = 'over';
    this.#write = undefined;
    this.#options.keys.leave(write);
  }
}
