import type { KeyClaim, KeyClaimEnd, KeyClaimListener, KeyClaimRequest } from '../../core/idempotency/key-store.ts';
import type { ClaimRefusalReason, KeyRecord, KnownWrite } from '../../core/idempotency/key-record.ts';
import { isUnconfirmed } from '../../core/idempotency/key-record.ts';
import type { WriteOutcome } from '../../core/idempotency/write-outcome.ts';
import type { Clock, Millis } from '../../core/scalars.ts';
import type { KeyOperation } from './key-protocol.ts';

export interface RemoteKeyClaimOptions {
  readonly clock: Clock;
  /** The number of the claim. */
  readonly claim: number;
  readonly request: KeyClaimRequest;
  readonly send: (operation: KeyOperation) => void;
  /** No reply to this claim is awaited any more. */
  readonly onOver: (claim: number) => void;
  /** Calls `run` once after this time. @returns a function that cancels it */
  readonly after: (delay: Millis, run: () => void) => () => void;
  /** False if other processes may presume this claim ended. */
  readonly isLeaseValid: () => boolean;
}

/** For so long after the deadline of a claim, or after a look-up, a reply is awaited. */
export const REPLY_WITHIN: Millis = 1000;

/** A key may expire at the upstream so much later than is assumed. */
const NEGLIGIBLE: Millis = 100;

/**
 * A claim to a key that another process keeps. While the claim holds the key alone, only the end of an earlier response changes
 * what other requests have established, and the keeper announces it. So the claim costs one round trip, and each retry another.
 */
export class RemoteKeyClaim implements KeyClaim {
  readonly #options: RemoteKeyClaimOptions;
  #listener: KeyClaimListener | undefined;
  #state: 'new' | 'waiting' | 'held' | 'over' = 'new';
  #isStopped = false;
  /** Other processes may have presumed the claim ended, and sent the write. */
  #hasLapsed = false;
  #known: KnownWrite = { record: undefined, endpoint: undefined };
  #claimedAt: Millis = 0;
  #lookedUpAt: Millis = 0;
  #sends = 0;
  #last: WriteOutcome | undefined;
  #cancelTimer: (() => void) | undefined;
  /** Look-ups under way, in order. */
  readonly #lookUps: LookUp[] = [];

  constructor(options: RemoteKeyClaimOptions) {
    this.#options = options;
  }

  get endpoint(): string | undefined {
    return this.#known.endpoint;
  }

  get hasWrite(): boolean {
    return this.#state === 'waiting' || this.#state === 'held';
  }

  /**
   * While the lease lasts, nobody else gets the key. A key that was made for this request is nobody else's anyway. With
   * `concurrent: pass`, another request may have sent the write since the last look-up.
   */
  get isCurrent(): boolean {
    const { request, clock, isLeaseValid } = this.#options;
    if (request.concurrent !== 'pass') return request.isNew === true || (!this.#hasLapsed && isLeaseValid());
    return request.ttl === undefined || clock.now() < this.#lookedUpAt + request.ttl;
  }

  begin(listener: KeyClaimListener, deadline: Millis): void {
    this.#listener = listener;
    if (this.#state === 'held') return this.lookUp((record) => listener.onClaimed(record, false));
    const { claim, request, send, after, clock } = this.#options;
    this.#state = 'waiting';
    this.#cancelTimer = after(Math.max(0, deadline - clock.now()) + REPLY_WITHIN, this.#onNoReply);
    send({ do: 'claim', claim, request, deadline });
  }

  stopWaiting(): void {
    if (this.#state !== 'waiting' || this.#isStopped) return;
    this.#isStopped = true;
    this.#options.send({ do: 'stop', claim: this.#options.claim });
  }

  onSend(endpoint: string): void {
    const { claim, clock, request, send } = this.#options;
    const now = clock.now();
    this.#sends += 1;
    const { record, endpoint: known } = this.#known;
    if (known === undefined) this.#known = { record, endpoint }; // the keeper records the same one
    // From the grant on, the keeper counts the write as sent to the only endpoint.
    const isKnown = this.#sends === 1 && endpoint === request.endpoint && now - this.#claimedAt < NEGLIGIBLE;
    if (isKnown) return;
    send({ do: 'send', claim, endpoint, at: now, last: this.#last });
  }

  recordOutcome(meaning: WriteOutcome): void {
    this.#last = meaning;
  }

  lookUp(onRecord: (record: KeyRecord | undefined) => void): void {
    const { claim, request, send, after, clock } = this.#options;
    if (!this.hasWrite) return onRecord(undefined);
    const isAlone = this.#state === 'held' && request.concurrent !== 'pass' && this.isCurrent;
    const { record } = this.#known;
    // A response that is still being sent may break off, and the announcement of this may be lost.
    const isSettled = record?.isArriving !== true;
    // The keeper forgets the endpoint before an attempt goes to another one.
    const isKnown = isAlone && isSettled && this.#sends < (request.endpoint === undefined ? 1 : 2);
    if (isKnown) return onRecord(record);
    this.#lookedUpAt = clock.now();
    const cancelTimer = after(REPLY_WITHIN, () => this.#answer(lookUp, this.#withDoubt(this.#unresolved)));
    const lookUp: LookUp = { onRecord, sends: this.#sends, cancelTimer };
    this.#lookUps.push(lookUp);
    send({ do: 'look', claim, last: this.#last });
  }

  release(end: KeyClaimEnd): void {
    if (!this.hasWrite) return;
    const { claim, send } = this.#options;
    this.#state = 'over';
    send({ do: 'release', claim, end, last: this.#last });
  }

  onUndelivered(): void {
    const { claim, send } = this.#options;
    if (this.#state === 'over') send({ do: 'undelivered', claim });
  }

  close(): void {
    const { claim, send, onOver } = this.#options;
    onOver(claim);
    if (this.#state !== 'new') send({ do: 'close', claim });
  }

  // — Replies —

  onClaimed(known: KnownWrite, hasWaited: boolean): void {
    if (this.#state !== 'waiting') return;
    this.#cancelTimer?.();
    this.#state = 'held';
    this.#claimedAt = this.#options.clock.now();
    this.#known = known;
    if (!this.#isStopped) return this.#listener?.onClaimed(known.record, hasWaited);
    this.release({ kind: 'other' });
    this.#listener?.onClaimRefused('draining', isUnconfirmed(known.record));
  }

  onRefused(why: ClaimRefusalReason, mayHaveTakenEffect: boolean): void {
    if (this.#state !== 'waiting') return;
    this.#cancelTimer?.();
    this.#state = 'over';
    this.#listener?.onClaimRefused(why, mayHaveTakenEffect);
  }

  /**
   * @param isReply to a look-up; otherwise another request has changed the record
   * @param isLost the store did not respond: the record is what has to be assumed
   */
  onKnown({ record, endpoint }: KnownWrite, isReply: boolean, isLost = false): void {
    const lookUp = isReply ? this.#lookUps.shift() : undefined;
    // Without a record, no attempt has taken effect anywhere, unless the write was sent again before this late reply.
    const isFreed = record === undefined && lookUp?.sends === this.#sends;
    this.#known = { record, endpoint: endpoint ?? (isFreed ? undefined : this.endpoint) };
    if (!isReply) return;
    if (!isLost) this.#hasLapsed = false; // the record is the present one
    if (lookUp !== undefined) this.#answer(lookUp, isLost ? this.#withDoubt(record) : record);
  }

  onLapsed(): void {
    this.#hasLapsed = true;
  }

  /** The keeper of the key has gone: what others have done is not known any more. */
  onKeeperGone(): void {
    const record = this.#unresolved;
    this.#known = { record, endpoint: this.#known.endpoint };
    for (const lookUp of this.#lookUps.splice(0)) this.#answer(lookUp, record);
    this.onRefused('draining', true);
  }

  /** What has to be assumed if the keeper does not say what others have done. */
  get #unresolved(): KeyRecord {
    const firstSentAt = this.#known.record?.firstSentAt ?? this.#options.clock.now();
    return { firstSentAt, isAnswered: false };
  }

  #withDoubt(record: KeyRecord | undefined): KeyRecord {
    const known = record ?? this.#unresolved;
    return this.isCurrent || this.#options.request.concurrent === 'pass' ? known : { ...known, isInDoubt: true };
  }

  /** The keeper may grant the key later. */
  readonly #onNoReply = (): void => {
    if (this.#state !== 'waiting') return;
    this.release({ kind: 'other' });
    this.#listener?.onClaimRefused('key_store_lost', this.#options.request.isNew !== true);
  };

  #answer(lookUp: LookUp, record: KeyRecord | undefined): void {
    lookUp.cancelTimer();
    const { onRecord } = lookUp;
    lookUp.onRecord = ignore;
    onRecord(record);
  }
}

/** A pending look-up. A reply after `REPLY_WITHIN` is ignored. */
interface LookUp {
  onRecord: (record: KeyRecord | undefined) => void;
  /** How many times the write had been sent before this look-up. */
  readonly sends: number;
  readonly cancelTimer: () => void;
}

function ignore(): void {}
