import { MAX_PER_KEY } from '../../core/idempotency/key-claims.ts';
import type { ClaimRefusalReason } from '../../core/idempotency/key-record.ts';
import { isUnconfirmed } from '../../core/idempotency/key-record.ts';
import type { KeyClaimRequest } from '../../core/idempotency/key-store.ts';
import type { NameSession } from '../../core/idempotency/name-session.ts';
import type { Clock, Millis } from '../../core/scalars.ts';
import type { KeyReply } from './key-protocol.ts';
import type { KeyWaits } from './key-waits.ts';

/** The process that the claims are of. */
export interface ClaimOwner {
  readonly owner: string;
  idOf(number: number): string;
}

/** A claim that has no result yet. */
export interface PendingClaim {
  readonly number: number;
  readonly request: KeyClaimRequest;
  readonly deadline: Millis;
  /** It is refused if another request has the key. */
  isLast: boolean;
  /** The process stops waiting. */
  isStopped: boolean;
  /** It is about to be tried. */
  isDue: boolean;
  hasWaited: boolean;
  cancelTimer: (() => void) | undefined;
}

export interface PendingClaimsParts {
  readonly clock: Clock;
  readonly waits: KeyWaits;
  /** Calls `run` once after this time. @returns a function that cancels it */
  readonly schedule: (delay: Millis, run: () => void) => () => void;
  readonly reply: (reply: KeyReply) => void;
}

/** While requests wait, the key is tried this often, in case an announcement was lost. */
const POLL_INTERVAL: Millis = 1000;

/** The claims of this process to one name that have no result. Those that wait are tried again in the order of arrival. */
export class PendingClaims {
  readonly #parts: PendingClaimsParts;
  readonly #try: (pending: PendingClaim) => void;
  readonly #giveBack: (claim: number) => void;
  readonly #pending = new Map<number, PendingClaim>();
  readonly #waiting = new Set<PendingClaim>();
  #isPolling = false;

  /** @param tryClaim has the claim performed @param giveBack releases a key that was granted to a claim that was given up */
  constructor(parts: PendingClaimsParts, tryClaim: (pending: PendingClaim) => void, giveBack: (claim: number) => void) {
    this.#parts = parts;
    this.#try = tryClaim;
    this.#giveBack = giveBack;
  }

  get size(): number {
    return this.#pending.size;
  }

  has(number: number): boolean {
    return this.#pending.has(number);
  }

  add(number: number, request: KeyClaimRequest, deadline: Millis): void {
    const state = { isLast: false, isStopped: false, isDue: false, hasWaited: false, cancelTimer: undefined };
    const pending = { number, request, deadline, ...state };
    this.#pending.set(number, pending);
    this.#makeDue(pending);
  }

  /** Ends a wait for the key. @returns false if the claim has its result */
  stop(number: number): boolean {
    const pending = this.#pending.get(number);
    if (pending === undefined) return false;
    pending.isStopped = true;
    this.#tryLast(pending);
    return true;
  }

  /** @returns false if none waits */
  retryWaiting(): boolean {
    for (const pending of this.#waiting) this.#makeDue(pending);
    return this.#waiting.size > 0;
  }

  /** Claims the key in a session. @returns what happens once the result is stored */
  perform(session: NameSession, pending: PendingClaim, own: ClaimOwner): () => void {
    const { number, request, isLast, isStopped, hasWaited } = pending;
    const id = own.idOf(number);
    const result = session.claim(id, own.owner, isLast ? { ...request, concurrent: refusing(request) } : request);
    if (result.kind === 'waits') return () => this.#wait(pending);
    if (result.kind === 'refused') return () => this.refuse(pending, result.why, result.mayHaveTakenEffect);
    const { record, endpoint } = result;
    const mayHaveTakenEffect = isUnconfirmed(record);
    if (!isStopped) {
      return () => {
        if (!pending.isStopped) {
          return this.#settle(pending, { type: 'claimed', claim: number, record, endpoint, hasWaited });
        }
        this.refuse(pending, 'draining', mayHaveTakenEffect);
        this.#giveBack(number);
      };
    }
    session.change(id, (claim) => claim.release({ kind: 'other' }));
    session.close(id);
    return () => this.refuse(pending, 'draining', mayHaveTakenEffect);
  }

  /** @param mayHaveTakenEffect another request may have done the write; by default, because nobody knows */
  refuse(pending: PendingClaim, why: ClaimRefusalReason, mayHaveTakenEffect = pending.request.isNew !== true): void {
    const reason = pending.isStopped ? 'draining' : why;
    this.#settle(pending, { type: 'refused', claim: pending.number, why: reason, mayHaveTakenEffect });
  }

  #makeDue(pending: PendingClaim): void {
    if (pending.isDue) return;
    pending.isDue = true;
    this.#try(pending);
  }

  #tryLast(pending: PendingClaim): void {
    pending.isLast = true;
    this.#makeDue(pending);
  }

  #wait(pending: PendingClaim): void {
    const { clock, waits, schedule } = this.#parts;
    pending.isDue = false;
    pending.hasWaited = true;
    if (pending.isLast) return this.#makeDue(pending); // its time has ended meanwhile
    if (this.#waiting.has(pending)) return;
    if (this.#waiting.size >= MAX_PER_KEY || !waits.tryAdd(pending.request.place)) return this.#tryLast(pending);
    this.#waiting.add(pending);
    pending.cancelTimer = schedule(Math.max(0, pending.deadline - clock.now()), () => this.#tryLast(pending));
    this.#poll();
  }

  #poll(): void {
    if (this.#isPolling) return;
    this.#isPolling = true;
    this.#parts.schedule(POLL_INTERVAL, () => {
      this.#isPolling = false;
      if (this.retryWaiting()) this.#poll();
    });
  }

  #settle(pending: PendingClaim, result: KeyReply): void {
    this.#pending.delete(pending.number);
    if (this.#waiting.delete(pending)) this.#parts.waits.remove(pending.request.place);
    pending.cancelTimer?.();
    this.#parts.reply(result);
  }
}

function refusing({ concurrent }: KeyClaimRequest): KeyClaimRequest['concurrent'] {
  return concurrent === 'wait' ? 'refuse' : concurrent;
}
