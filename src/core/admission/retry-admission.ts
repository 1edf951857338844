import type { AccountPool } from '../accounts/account-pool.ts';
import {
  accountsFor,
  assignAccount,
  type ChoiceContext,
  delayOfOtherAccount,
  ticketsToMove,
  untilProbe,
} from '../accounts/assign-account.ts';
import { accountResultOf } from '../accounts/record-account-outcome.ts';
import type { AttemptOutcome } from '../exchange/attempt-outcome.ts';
import type { Millis } from '../scalars.ts';
import type { RetryOutcome } from '../retry/retry-policy.ts';
import type { Limit } from '../limits/limit.ts';
import type { DecidingGate } from '../quota/clients/client-quota-admission.ts';
import { resolveLimits } from '../limits/resolve-limits.ts';
import type { OtherAccount, PlannedRetry } from '../retry/choose-retry.ts';
import { computeRejectionRetryAfter } from './refusals/compute-retry-after.ts';
import { connectionSlotsFor } from './connection-slots.ts';
import { computeEffectiveWeight } from './effective-weight.ts';
import type { GateStore } from './gate-store.ts';
import { registerDeparture, releaseQuotas } from './register-arrival.ts';
import type { Ticket } from './ticket.ts';
import { clientHeldUntil, estimateWait } from './wait-estimate.ts';
import type { WaitQueue } from './wait-queue.ts';

/** Decides whether a request may be repeated: by a retry here, or by its client after a Retry-After. */
export class RetryAdmission {
  readonly #store: GateStore;
  readonly #waitQueue: WaitQueue;
  readonly #gate: DecidingGate;

  constructor(store: GateStore, waitQueue: WaitQueue, gate: DecidingGate) {
    this.#store = store;
    this.#waitQueue = waitQueue;
    this.#gate = gate;
  }

  /**
   * Reserves a retry or a poll, with its budget token: a retry counts while it sleeps. Returns why not if it is denied.
   * @param retry `keepsAccount`: the account of the last attempt has what the next one asks for
   */
  reserve(
    ticket: Ticket,
    retry: Pick<PlannedRetry, 'delay' | 'usesBudget'> & { readonly keepsAccount?: boolean },
    deadline: Millis,
    now: Millis,
  ): RetryOutcome | undefined {
    const upstream = this.#store.upstream(ticket.upstream);
    const { clients } = this.#store;
    const accounts = accountsFor(ticket, upstream);
    if (retry.keepsAccount === true) ticket.keptAccount ??= ticket.sentWith;
    if (accounts !== undefined) this.assignAccount(ticket, accounts, now);
    else ticket.limits = resolveLimits(this.#store, ticket.limitRefs);
    releaseQuotas(this.#store, this.#waitQueue, ticket, now);
    const slot = ticket.clientSlot;
    if (slot === undefined || clientHeldUntil(clients, ticket, slot, now) > now + retry.delay) return 'deadline';
    const queued =
      estimateWait(ticket, upstream.connectionSlots, computeEffectiveWeight(this.#store, ticket, now), now) -
      retry.delay;
    if (queued > upstream.queue.maxWait || now + retry.delay + Math.max(0, queued) >= deadline) return 'deadline';
    if (retry.usesBudget && !upstream.retryBudget.spend(ticket.fairnessKey, now)) return 'budget_exhausted';
    return undefined;
  }

  /**
   * A poll counts as a new arrival of its client, which has paid for the request already. In observe mode, the ticket of the last one may
   * still be queued.
   */
  beginPoll(ticket: Ticket): void {
    if (ticket.flow === undefined) registerDeparture(this.#store, ticket);
  }

  /** See `assignAccount`. */
  assignAccount(ticket: Ticket, accounts: AccountPool, now: Millis): void {
    assignAccount(this.#choice, ticket, accounts, now);
  }

  /** Returns another account for a request that was just rejected with one; undefined if there is none, or the outcome is no rejection. */
  findOtherAccount(ticket: Ticket, outcome: AttemptOutcome, now: Millis): OtherAccount | undefined {
    const accounts = accountsFor(ticket, this.#store.upstream(ticket.upstream));
    if (accounts === undefined) return undefined;
    const result = accountResultOf(outcome, accounts.quarantine);
    if (result !== 'throttled' && result !== 'rejected') return undefined;
    const delay = delayOfOtherAccount(this.#choice, ticket, accounts, result, now);
    return delay === undefined ? undefined : { delay, isCredentialRejected: result === 'rejected' };
  }

  /** Decides again about requests that wait at these limits, and whose account has stopped. */
  moveWaiting(limits: readonly Limit[], now: Millis): void {
    for (const ticket of ticketsToMove(this.#store, limits, now)) {
      if (ticket.flow === undefined) continue; // settled by one before
      this.#waitQueue.dequeue(ticket, now);
      this.#gate.decide({ ticket, deadline: ticket.expiresAt, clientTimeout: ticket.clientTimeout }, now);
    }
  }

  get #choice(): ChoiceContext {
    return { store: this.#store, waitQueue: this.#waitQueue };
  }

  /** A reserved retry will not be sent. */
  cancel(ticket: Ticket, retry: PlannedRetry): void {
    if (retry.usesBudget) this.#store.upstream(ticket.upstream).retryBudget.refund(ticket.fairnessKey);
  }

  /**
   * Computes the Retry-After for a request that the upstream has just rejected, as for a refusal of the gate, after the
   * outcome was recorded. Reserves a return slot. Returns undefined in observe mode, and if the upstream's own Retry-After applies.
   * @param atLeast what the upstream asks for; undefined if its Retry-After is sufficient
   * @param isOfAccount both concern only the account that the request was sent with: a repeat may be sent with another one sooner
   */
  retryAfterRejection(
    ticket: Ticket,
    atLeast: Millis | undefined,
    now: Millis,
    isOfAccount = false,
  ): Millis | undefined {
    if (ticket.mode === 'observe') return undefined;
    const { clientSlot } = ticket;
    if (clientSlot === undefined) return atLeast;
    const upstream = this.#store.upstream(ticket.upstream);
    const accounts = accountsFor(ticket, upstream);
    if (accounts !== undefined) this.assignAccount(ticket, accounts, now);
    else ticket.limits = resolveLimits(this.#store, ticket.limitRefs); // the outcome may have created one
    const untilQuota = ticket.clientQuota?.returnDelay(now) ?? 0;
    const isOther = isOfAccount && accounts !== undefined && isOtherThanSentWith(ticket);
    const asked = isOther ? untilProbe(ticket, accounts, now) : atLeast;
    if (asked === undefined) return undefined;
    for (const limit of ticket.limits) this.#waitQueue.advance(limit, now);
    const heldFor = clientHeldUntil(this.#store.clients, ticket, clientSlot, now) - now;
    const slots = connectionSlotsFor(ticket, upstream);
    const estimate = estimateWait(ticket, slots, computeEffectiveWeight(this.#store, ticket, now), now);
    // The shared limit of the other account may not show its stop yet.
    const wait = isOther ? Math.max(estimate, (ticket.account?.stoppedUntil ?? now) - now) : estimate;
    const atSoonest = Math.max(heldFor, asked, untilQuota);
    return computeRejectionRetryAfter(this.#store, { ticket, slot: clientSlot, wait }, atSoonest, now);
  }
}

/** False if it has no account: the one that it needs is not configured. */
function isOtherThanSentWith({ account, sentWith }: Ticket): boolean {
  return account !== undefined && account.name !== sentWith;
}
