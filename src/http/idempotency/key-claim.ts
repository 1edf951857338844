import type { AttemptOutcome } from '../../core/exchange/attempt-outcome.ts';
import type { ExchangeVerdict } from '../../core/exchange/exchange-verdict.ts';
import type { KeyRecord } from '../../core/idempotency/key-record.ts';
import type { Millis } from '../../core/scalars.ts';
import { hasCredential } from '../../core/idempotency/credential-list.ts';
import type { KeyClaimant } from '../../core/idempotency/key-claims.ts';
import type { KeyedWrite } from '../../core/idempotency/keyed-write.ts';
import { isAnsweredFor, isUnresolved } from '../../core/idempotency/keyed-write.ts';
import type { WriteOutcome } from '../../core/idempotency/write-outcome.ts';
import { classifyWrite, isFinalAnswer } from '../../core/idempotency/write-outcome.ts';
import type { KeyClaimListener, KeyClaimOptions } from './key-claim-options.ts';

/** A request's claim to its idempotency key, from the claim until the verdict. */
export class KeyClaim implements KeyClaimant {
  readonly #options: KeyClaimOptions;
  #listener: KeyClaimListener | undefined;
  #cancelTimer: (() => void) | undefined;
  /** `shared`: several requests may use the key at a time (`concurrent: pass`). */
  #state: 'new' | 'waiting' | 'held' | 'shared' | 'over' = 'new';
  /** Defined while the claim is waiting, held or shared. */
  #write: KeyedWrite | undefined;
  /** What was known before this exchange. */
  #record: KeyRecord | undefined;
  #firstSentAt: Millis | undefined;
  /** Of the write, at the end of the claim. */
  #endpoint: string | undefined;
  /** The response to the write was forwarded, and has not been cut so far. */
  #isDelivered = false;
  /** That response is final: it settles whether the write took effect. */
  #isFinal = false;
  /** An attempt may have taken effect, and no later one was answered. */
  #mayHaveTakenEffect = false;
  /** Bytes of an attempt may have reached the upstream. */
  #hasReached = false;
  /** What the last attempt says about the write. */
  #last: WriteOutcome | undefined;

  constructor(options: KeyClaimOptions) {
    this.#options = options;
  }

  get fairnessKey(): string {
    return this.#options.place.fairnessKey;
  }

  get client(): string {
    return this.#options.place.client;
  }

  /** Where the write was sent: the endpoint that may know its key. Defined with a single endpoint too: there may have been others. */
  get endpoint(): string | undefined {
    return this.#write?.endpoint;
  }

  /** Waits for the key until the deadline. May be called again: a key that is held is granted at once. */
  begin(listener: KeyClaimListener, deadline: Millis): void {
    this.#listener = listener;
    if (this.#state === 'held' || this.#state === 'shared') return this.#grant();
    const { keys, identity, concurrent, clock } = this.#options;
    const write = keys.join(identity);
    this.#write = write;
    if (concurrent === 'pass') {
      this.#state = 'shared';
      return this.#grant();
    }
    if (keys.claims.tryAcquire(write)) return this.onClaimed();
    if (concurrent === 'refuse' || !keys.claims.enqueue(write, this)) return this.#refuse();
    this.#state = 'waiting';
    this.#cancelTimer = this.#options.schedule(Math.max(0, deadline - clock.now()), () => this.#onTimeout(write));
  }

  onClaimed(): void {
    this.#cancelTimer?.();
    this.#state = 'held';
    this.#grant();
  }

  /** An attempt is sent to this endpoint. */
  onSend(endpoint: string): void {
    const { keys, clock } = this.#options;
    const write = this.#write;
    if (write === undefined) return;
    if (this.#firstSentAt === undefined) {
      this.#firstSentAt = clock.now();
      keys.onSent(write, this.#firstSentAt, endpoint);
      return;
    }
    if (!this.#hasReached) this.#firstSentAt = clock.now();
    // A retry after a response, as after some card declines: the response is stored for the attempts before it.
    if (this.#last === 'answered') this.#store(write, true);
    if (write.state !== 'new' || write.sentCount !== 1 || this.#mayHaveTakenEffect) return;
    write.endpoint = endpoint; // the earlier attempts did nothing at theirs
    if (!this.#hasReached) write.firstSentAt = this.#firstSentAt;
  }

  /** The claim is waiting, held or shared, so `lookUpKey` finds the write. */
  get hasWrite(): boolean {
    return this.#write !== undefined;
  }

  /** Records the outcome of an attempt. */
  recordOutcome(outcome: AttemptOutcome): void {
    const meaning = classifyWrite(outcome, this.#options.policy.notProcessed);
    if (meaning !== 'nothing_sent') this.#hasReached = true;
    if (meaning === 'answered') this.#mayHaveTakenEffect = false;
    else this.#mayHaveTakenEffect ||= meaning === 'may_have_happened';
    this.#last = meaning;
  }

  /** What other requests have established about the write, or may have done by sending it; undefined if nothing. */
  lookUpKey(): KeyRecord | undefined {
    const write = this.#write;
    if (write === undefined) return undefined;
    const { firstSentAt, sentCount } = write;
    const isSentByOthers = sentCount > (this.#firstSentAt === undefined ? 0 : 1);
    const known = this.#recall(write);
    const isOpenByOthers = isSentByOthers && known?.isFinal !== true;
    return isOpenByOthers ? { firstSentAt, isAnswered: false } : known;
  }

  /** Stops waiting. @returns whether the request that holds the key may have done the write; false if the claim did not wait */
  cancel(): boolean {
    const write = this.#write;
    if (this.#state !== 'waiting' || write === undefined) return false;
    const mayBeDone = isUnresolved(write);
    this.#stopWaiting(write);
    return mayBeDone;
  }

  /**
   * Ends the claim with the exchange: frees the key, and stores what is known about the write.
   * @param isDelivered the response reaches the client
   */
  release(verdict: ExchangeVerdict, outcome: AttemptOutcome | undefined, isDelivered: boolean): void {
    this.cancel();
    const { keys } = this.#options;
    const write = this.#write;
    if (write === undefined) return;
    if (this.#firstSentAt !== undefined) {
      this.#recordVerdict(write, verdict, outcome, isDelivered);
      keys.onAttemptEnd(write);
    }
    if (this.#state === 'held') keys.claims.release(write);
    this.#leave(write);
  }

  /**
   * The response did not reach the client in full, so the client does not know the outcome. A cut may be reported twice, by
   * the upstream's connection and by the client's; it takes back one delivery.
   */
  onUndelivered(): void {
    if (!this.#isDelivered) return;
    this.#isDelivered = false;
    const { keys, identity } = this.#options;
    const write = keys.join(identity);
    write.endpoint ??= this.#endpoint; // if it was forgotten meanwhile
    if (write.state !== 'answered') this.#store(write, false);
    else keys.onUndelivered(write, this.#isFinal, identity.credential);
    keys.leave(write);
  }

  #recordVerdict(
    write: KeyedWrite,
    verdict: ExchangeVerdict,
    outcome: AttemptOutcome | undefined,
    isDelivered: boolean,
  ): void {
    const { mayUseOtherEndpoints = false, policy } = this.#options;
    const isAnswered =
      verdict.kind === 'forward' && outcome !== undefined && classifyWrite(outcome, policy.notProcessed) === 'answered';
    if (isAnswered && isDelivered) {
      this.#isDelivered = true;
      this.#endpoint = write.endpoint;
      this.#isFinal = isFinalAnswer(outcome, mayUseOtherEndpoints);
      this.#store(write, true, this.#isFinal);
      return;
    }
    // Answered but not delivered, or unresolved by what this exchange sent.
    if (isAnswered || this.#mayHaveTakenEffect || (verdict.kind === 'gone' && verdict.unknown)) {
      this.#store(write, false);
    } else if (this.#last === 'answered') this.#store(write, true); // the retry that followed was not made
  }

  #store(write: KeyedWrite, isAnswered: boolean, isFinal = false): void {
    if (this.#firstSentAt === undefined) return;
    const firstSentAt = this.#record?.firstSentAt ?? this.#firstSentAt;
    const { keys, identity } = this.#options;
    keys.record(write, { firstSentAt, isAnswered, isFinal }, identity.credential);
  }

  #grant(): void {
    this.#record = this.lookUpKey();
    this.#listener?.onClaimed(this.#record);
  }

  #recall(write: KeyedWrite): KeyRecord | undefined {
    const { keys, ttl, clock, identity } = this.#options;
    const record = keys.recall(write, ttl, clock.now());
    if (record?.isAnswered !== true) return record;
    const isAnswered = isAnsweredFor(write, identity.credential);
    return { ...record, isAnswered, isFinal: hasCredential(write.finalFor, identity.credential) };
  }

  #refuse(): void {
    const write = this.#write;
    if (write === undefined) return;
    const mayBeDone = isUnresolved(write);
    this.#leave(write);
    this.#listener?.onClaimRefused('key_in_use', mayBeDone);
  }

  #onTimeout(write: KeyedWrite): void {
    const mayBeDone = isUnresolved(write);
    this.#stopWaiting(write);
    this.#listener?.onClaimRefused('key_in_use', mayBeDone);
  }

  #stopWaiting(write: KeyedWrite): void {
    this.#cancelTimer?.();
    this.#options.keys.claims.cancelWait(write, this);
    this.#leave(write);
  }

  #leave(write: KeyedWrite): void {
    this.#state = 'over';
    this.#write = undefined;
    this.#options.keys.leave(write);
  }
}
