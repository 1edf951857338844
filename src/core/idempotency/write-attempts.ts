import type { Millis } from '../scalars.ts';
import type { ClaimProgress } from './claim-progress.ts';
import { addCredential, hasCredential } from './credential-list.ts';
import type { KeyClaimEnd } from './key-store.ts';
import type { KeyRecord } from './key-record.ts';
import type { KeyedWrite } from './keyed-write.ts';
import { isAmbiguous, isAnsweredFor, isArriving } from './keyed-write.ts';
import type { RegistryKeyClaimOptions } from './registry-key-claim-options.ts';
import type { WriteOutcome } from './write-outcome.ts';

export type WriteAttemptsOptions = Pick<RegistryKeyClaimOptions, 'keys' | 'clock' | 'request' | 'countsAsSent'>;

/** The attempts of one request at its write, and its response, as the registry records them. */
export class WriteAttempts {
  readonly #options: WriteAttemptsOptions;
  readonly #progress: ClaimProgress;
  /** The write, while a response to it is being sent. */
  #answered: KeyedWrite | undefined;

  constructor(options: WriteAttemptsOptions, progress: ClaimProgress) {
    this.#options = options;
    this.#progress = progress;
  }

  get answered(): KeyedWrite | undefined {
    return this.#answered;
  }

  /** Joins the write. One that is forgotten now, because its key is so old, leaves no doubt. */
  join(): KeyedWrite {
    const { keys, request } = this.#options;
    const write = keys.join(request.identity);
    const isForgotten = (): boolean => write.requestCount === 1 && this.lookUp(write) === undefined;
    if (!isAmbiguous(write, request.identity) || !isForgotten()) return write;
    keys.leave(write);
    return keys.join(request.identity);
  }

  /** Counts what was stored of them. */
  resume(write: KeyedWrite): void {
    if (this.#progress.isResponding) {
      this.#answered = write;
      return this.#options.keys.onResponse(write, this.#credential, this.#progress.isFinal);
    }
    write.requestCount += 1;
    if (this.#progress.firstSentAt === undefined) return;
    write.sentCount += 1;
    write.sentFor = addCredential(write.sentFor, this.#credential);
  }

  /** @param endpoint undefined if not chosen yet */
  onSend(write: KeyedWrite, endpoint: string | undefined, now: Millis): void {
    const { keys } = this.#options;
    const progress = this.#progress;
    if (progress.firstSentAt === undefined) {
      progress.firstSentAt = now;
      return keys.onSent(write, now, endpoint, this.#credential);
    }
    if (!progress.hasReached) progress.firstSentAt = now;
    // A retry after a response, as after some card declines: the response is stored for the attempts before it.
    if (progress.last === 'answered') this.#store(write, true);
    // The earlier attempts did nothing at their endpoints.
    const isFirst = this.#isFirst(write);
    if (!isFirst && write.endpoint !== undefined) return;
    keys.onSentAgain(write, endpoint, isFirst && !progress.hasReached ? progress.firstSentAt : undefined);
  }

  recordOutcome(meaning: WriteOutcome): void {
    const progress = this.#progress;
    if (meaning !== 'nothing_sent') progress.hasReached = true;
    if (meaning === 'answered') progress.mayHaveTakenEffect = false;
    else progress.mayHaveTakenEffect ||= meaning === 'may_have_taken_effect';
    progress.last = meaning;
  }

  /** What other requests have established about the write, or may have done. */
  lookUp(write: KeyedWrite): KeyRecord | undefined {
    const { firstSentAt, sentCount } = write;
    const isSentByOthers = sentCount > (this.#progress.firstSentAt === undefined ? 0 : 1);
    const known = this.#recall(write);
    const isOpenByOthers = isSentByOthers && known?.isFinal !== true;
    if (isOpenByOthers) return { firstSentAt, isAnswered: false };
    return known?.isAnswered === true && isArriving(write) ? { ...known, isArriving: true } : known;
  }

  /**
   * The next attempt may go to another endpoint than those that did nothing. Whoever keeps the key must know before: if this
   * process ends, a repeat must not go to the earlier one. @returns whether that has changed something
   */
  freeEndpoint(write: KeyedWrite): boolean {
    const { request, countsAsSent, keys } = this.#options;
    const { last } = this.#progress;
    if (!countsAsSent || request.endpoint !== undefined || write.endpoint === undefined) return false;
    if (last === undefined || last === 'answered' || !this.#isFirst(write)) return false;
    keys.onSentAgain(write, undefined, undefined);
    return true;
  }

  /** The request has ended, and with it its attempts. */
  end(write: KeyedWrite, end: KeyClaimEnd): void {
    if (this.#progress.firstSentAt === undefined) {
      if (end.kind === 'answered') this.#recordEnd(write, end); // by a kept response
      return;
    }
    this.#recordEnd(write, end);
    this.#options.keys.onAttemptEnd(write, this.#credential);
  }

  onUndelivered(): void {
    const progress = this.#progress;
    if (!progress.isDelivered) return;
    progress.isDelivered = false;
    const { keys, request } = this.#options;
    const write = keys.join(request.identity, true);
    write.endpoint ??= progress.endpoint; // if it was forgotten meanwhile
    if (write.state !== 'answered') this.#store(write, false);
    else keys.onUndelivered(write, progress.isFinal, this.#credential);
    keys.leave(write);
  }

  /** The response has ended. @returns whether requests that have the key know that it arrives, and no other one does */
  close(): boolean {
    const write = this.#answered;
    this.#answered = undefined;
    this.#progress.isResponding = false;
    if (write === undefined) return false;
    const wasArriving = isArriving(write);
    this.#options.keys.onResponseEnd(write, this.#credential, this.#progress.isDelivered);
    return wasArriving && !isArriving(write) && write.requestCount > 0;
  }

  get #credential(): number {
    return this.#options.request.identity.credential;
  }

  /** No attempt so far has done anything, as far as is known. */
  #isFirst(write: KeyedWrite): boolean {
    return write.state === 'new' && write.sentCount === 1 && !this.#progress.mayHaveTakenEffect;
  }

  #recordEnd(write: KeyedWrite, end: KeyClaimEnd): void {
    const progress = this.#progress;
    if (end.kind === 'answered' && end.isDelivered) {
      progress.isDelivered = true;
      progress.endpoint = write.endpoint;
      progress.isFinal = end.isFinal;
      progress.isResponding = true;
      this.#answered = write;
      this.#options.keys.onResponse(write, this.#credential, end.isFinal);
      this.#store(write, true, end.isFinal);
      return;
    }
    // Answered but not delivered, or unresolved by what this exchange sent.
    if (end.kind !== 'other' || progress.mayHaveTakenEffect) this.#store(write, false);
    else if (progress.last === 'answered') this.#store(write, true); // the retry that followed was not made
  }

  #store(write: KeyedWrite, isAnswered: boolean, isFinal = false): void {
    const { record, firstSentAt: ownFirst } = this.#progress;
    const firstSentAt = record?.firstSentAt ?? ownFirst;
    if (firstSentAt === undefined) return;
    this.#options.keys.record(write, { firstSentAt, isAnswered, isFinal }, this.#credential);
  }

  #recall(write: KeyedWrite): KeyRecord | undefined {
    const { keys, clock, request } = this.#options;
    const record = keys.recall(write, request.ttl, clock.now());
    if (record?.isAnswered !== true) return record;
    const isFinal = hasCredential(write.finalFor, this.#credential);
    return { ...record, isAnswered: isAnsweredFor(write, this.#credential), isFinal };
  }
}
