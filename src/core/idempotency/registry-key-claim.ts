import type { Millis } from '../scalars.ts';
import type { ClaimProgress } from './claim-progress.ts';
import { newClaimProgress } from './claim-progress.ts';
import type { KeyClaimant } from './key-claims.ts';
import type { KeyClaim, KeyClaimChange, KeyClaimEnd, KeyClaimListener } from './key-store.ts';
import type { KeyedWrite } from './keyed-write.ts';
import { isAmbiguous, UNKNOWN_ENDPOINT } from './keyed-write.ts';
import type { ClaimRefusalReason, KeyRecord, KnownWrite } from './key-record.ts';
import { isUnconfirmed } from './key-record.ts';
import type { RegistryKeyClaimOptions, StoredClaim } from './registry-key-claim-options.ts';
import { WriteAttempts } from './write-attempts.ts';
import type { WriteOutcome } from './write-outcome.ts';

/** A claim to a key of the registry of this process. */
export class RegistryKeyClaim implements KeyClaim, KeyClaimant {
  readonly fairnessKey: string;
  readonly client: string;
  readonly #options: RegistryKeyClaimOptions;
  readonly #progress: ClaimProgress;
  readonly #attempts: WriteAttempts;
  #listener: KeyClaimListener | undefined;
  #deadline: Millis = 0;
  #cancelTimer: (() => void) | undefined;
  #hasWaited = false;
  #lookedUpAt: Millis = 0;
  #isDecidedLocally = false;
  /** Defined while the claim is waiting, held or shared. */
  #write: KeyedWrite | undefined;
  /** What was known when the claim was refused: a look-up of another process may arrive after that. */
  #knownAtRefusal: KnownWrite | undefined;

  constructor(options: RegistryKeyClaimOptions) {
    this.#options = options;
    const { request, resumed } = options;
    this.#progress = resumed?.progress ?? newClaimProgress();
    this.#attempts = new WriteAttempts(options, this.#progress);
    if (resumed !== undefined) this.#resume(resumed.write);
    ({ fairnessKey: this.fairnessKey, client: this.client } = request.place);
  }

  get endpoint(): string | undefined {
    return this.#write?.endpoint;
  }

  /** What is to be stored of the claim; undefined if nothing more can come of it. */
  get stored(): StoredClaim | undefined {
    const write = this.#hasKey ? this.#write : this.#attempts.answered;
    return write && { write, progress: this.#progress };
  }

  /** What `lookUp` finds, and where the write may have been sent. */
  get known(): KnownWrite {
    if (this.#knownAtRefusal !== undefined) return this.#knownAtRefusal;
    return { record: this.#write && this.#attempts.lookUp(this.#write), endpoint: this.endpoint };
  }

  get hasWrite(): boolean {
    return this.#write !== undefined;
  }

  /** With `concurrent: pass`, another request may have sent the write since the last look-up. Otherwise nobody else has the key. */
  get isCurrent(): boolean {
    const { ttl, concurrent } = this.#options.request;
    if (concurrent !== 'pass' || ttl === undefined) return true;
    return this.#options.clock.now() < this.#lookedUpAt + ttl;
  }

  get #hasKey(): boolean {
    return this.#progress.state === 'held' || this.#progress.state === 'shared';
  }

  /** Whether it has the key that the other claim has, or had. */
  isHolderOf(other: RegistryKeyClaim): boolean {
    return this.#hasKey && this.#options.request.identity.name === other.#options.request.identity.name;
  }

  begin(listener: KeyClaimListener, deadline: Millis): void {
    this.#listener = listener;
    this.#deadline = deadline;
    if (this.#hasKey) return this.#grant();
    const { keys, clock, request } = this.#options;
    const { identity, concurrent } = request;
    if (!keys.makeRoomFor(identity)) return listener.onClaimRefused('key_overused', false);
    const write = this.#attempts.join();
    this.#write = write;
    // A request that was not sent may still be rejected: then this one makes the write.
    const isNothingKnown = this.known.record === undefined;
    if (isAmbiguous(write, identity)) return this.#refuse(write, isNothingKnown ? 'key_in_use' : 'key_ambiguous');
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

  stopWaiting(): void {
    const write = this.#write;
    if (this.#progress.state === 'waiting' && write !== undefined) this.#refuse(write, 'draining');
  }

  /** @param endpoint undefined if not chosen yet */
  onSend(endpoint: string | undefined, now: Millis = this.#options.clock.now()): void {
    if (this.#write !== undefined) this.#attempts.onSend(this.#write, endpoint, now);
  }

  apply(change: KeyClaimChange): void {
    if (change.do === 'undelivered') return this.onUndelivered();
    if (change.last !== undefined) this.recordOutcome(change.last);
    if (change.do === 'send') this.onSend(change.endpoint, change.at);
    else this.release(change.end);
  }

  recordOutcome(meaning: WriteOutcome): void {
    this.#attempts.recordOutcome(meaning);
  }

  lookUp(onRecord: (record: KeyRecord | undefined) => void): void {
    const write = this.#write;
    const { journal } = this.#options.keys;
    const { endpoint } = this;
    if (this.#options.request.concurrent === 'pass') this.#lookedUpAt = this.#options.clock.now();
    if (write === undefined || !this.freeEndpoint() || journal === undefined) return onRecord(this.known.record);
    journal.whenStored((isStored) => {
      if (isStored) return onRecord(this.known.record);
      // The store names the endpoint, so a repeat goes there: so must this request.
      write.endpoint = endpoint;
      onRecord({ firstSentAt: write.firstSentAt, isAnswered: false });
    });
  }

  /** See `WriteAttempts.freeEndpoint`. */
  freeEndpoint(): boolean {
    return this.#write !== undefined && this.#attempts.freeEndpoint(this.#write);
  }

  /** Whether it was presumed ended, and has not got the key again. */
  get hasLostKey(): boolean {
    return this.#progress.state === 'shared' && this.#options.request.concurrent !== 'pass';
  }

  /** A claim that has lost its key gets it again, unless another request has it. @returns whether it does */
  takeBack(): boolean {
    const write = this.#write;
    if (write === undefined || !this.hasLostKey || !this.#options.keys.claims.tryAcquire(write)) return false;
    this.#progress.state = 'held';
    return true;
  }

  release(end: KeyClaimEnd): void {
    const write = this.#write;
    if (write === undefined) return;
    if (this.#progress.state === 'waiting') this.#cancelWait(write);
    this.#attempts.end(write, end);
    if (this.#progress.state === 'held') this.#options.keys.claims.release(write);
    this.#leave(write);
  }

  onUndelivered(): void {
    this.#attempts.onUndelivered();
  }

  /** @returns see `WriteAttempts.close` */
  close(): boolean {
    return this.#attempts.close();
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
    this.#attempts.resume(write);
    if (this.#progress.isResponding) return;
    this.#write = write;
    if (this.#progress.state === 'held') this.#options.keys.claims.tryAcquire(write);
  }

  #grant(): void {
    const write = this.#write;
    if (write === undefined) return;
    const { countsAsSent, request, keys } = this.#options;
    if (countsAsSent && this.#progress.firstSentAt === undefined) this.onSend(request.endpoint);
    this.#progress.record = this.#attempts.lookUp(write);
    if (keys.journal === undefined) return this.#listener?.onClaimed(this.#progress.record, this.#hasWaited);
    keys.journal.whenStored((isStored) => this.#onStored(write, isStored));
  }

  #onStored(write: KeyedWrite, isStored: boolean): void {
    if (this.#write !== write) return; // released meanwhile
    const { onStoreLost, identity } = this.#options.request;
    // Stored too late, it is refused too: the request has no time left.
    const isInTime = this.#options.clock.now() < this.#deadline;
    if (isInTime && (isStored || onStoreLost === 'local')) {
      if (!isStored && !this.#isDecidedLocally) this.#options.keys.journal?.onDecidedLocally?.(identity.upstream);
      this.#isDecidedLocally ||= !isStored;
      return this.#listener?.onClaimed(this.#progress.record, this.#hasWaited);
    }
    this.#knownAtRefusal = this.known;
    this.release({ kind: 'other' });
    this.#reportRefusal('key_store_lost');
  }

  #refuse(write: KeyedWrite, why: ClaimRefusalReason): void {
    if (this.#progress.state === 'waiting') this.#cancelWait(write);
    this.#knownAtRefusal = this.known;
    this.#leave(write);
    this.#reportRefusal(why);
  }

  /** A response that is still being sent goes to the request that this one has waited for: see `WriteHistory.isUnconfirmed`. */
  #reportRefusal(why: ClaimRefusalReason): void {
    const record = this.#knownAtRefusal?.record;
    const isOpen = this.#hasWaited ? record?.isAnswered === false : isUnconfirmed(record);
    this.#listener?.onClaimRefused(why, isOpen);
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
