import { computeEffectiveWeight } from '../admission/effective-weight.ts';
import type { RefusalReason } from '../admission/gate-decision.ts';
import type { GateStore } from '../admission/gate-store.ts';
import type { Ticket } from '../admission/ticket.ts';
import { NO_LIMITS } from '../admission/ticket.ts';
import { clientHeldUntil, estimateWait } from '../admission/wait-estimate.ts';
import type { WaitQueue } from '../admission/wait-queue.ts';
import type { Limit } from '../limits/limit.ts';
import { resolveLimits } from '../limits/resolve-limits.ts';
import { waitingTickets } from '../quota/quota-review.ts';
import type { Millis } from '../scalars.ts';
import type { AccountPool } from './account-pool.ts';
import type { Account } from './account.ts';
import { type AccountCandidate, chooseAccount, waitOf } from './choose-account.ts';

interface Candidate extends AccountCandidate {
  readonly account: Account;
}

/** The parts of a gate that a choice uses. */
export interface ChoiceContext {
  readonly store: GateStore;
  readonly waitQueue: WaitQueue;
}

/**
 * Chooses the account of a ticket, and sets the ticket's account and limits. If the only account that it may use is not configured,
 * the ticket has no account and no limits: it is admitted, and not sent.
 */
export function assignAccount(context: ChoiceContext, ticket: Ticket, pool: AccountPool, now: Millis): void {
  const chosen = chooseAccount(candidatesOf(context, ticket, pool, now), now);
  useAccount(context, ticket, chosen?.account, now);
  if (chosen !== undefined) pool.onChosen(chosen.account);
}

/**
 * How long a rejected request would sleep before it can be sent with another account: 0 if it may ask for admission now, and wait in
 * the queue if it has to. Returns undefined if no other account may serve it.
 */
export function delayOfOtherAccount(
  context: ChoiceContext,
  ticket: Ticket,
  pool: AccountPool,
  now: Millis,
): Millis | undefined {
  const { account } = ticket;
  if (account === undefined || ticket.pinnedAccount() !== undefined) return undefined;
  const others = candidatesOf(context, ticket, pool, now).filter((each) => each.account !== account);
  useAccount(context, ticket, account, now);
  const best = chooseAccount(others, now);
  if (best === undefined || best.hasRejected) return undefined;
  const wait = waitOf(best, now);
  return wait <= context.store.upstream(ticket.upstream).queue.maxWait && best.probeAt <= now ? 0 : wait;
}

function candidatesOf(context: ChoiceContext, ticket: Ticket, pool: AccountPool, now: Millis): Candidate[] {
  const { store } = context;
  const pinned = ticket.pinnedAccount();
  const { connectionSlots } = store.upstream(ticket.upstream);
  const candidates: Candidate[] = [];
  for (const account of pool.accounts) {
    if (pinned !== undefined && pinned !== account.name) continue;
    useAccount(context, ticket, account, now);
    const wait = estimateWait(ticket, connectionSlots, computeEffectiveWeight(store, ticket, now), now);
    const { clientSlot } = ticket;
    const heldFor = clientSlot === undefined ? 0 : clientHeldUntil(store.clients, ticket, clientSlot, now) - now;
    candidates.push({
      account,
      wait: Math.max(wait, heldFor, account.stoppedUntil - now),
      probeAt: account.probeAt,
      hasRejected: ticket.rejectedBy?.includes(account) === true,
      hasThrottled: ticket.throttledBy === account,
      inFlight: account.inFlight,
      lastUse: account.lastUse,
    });
  }
  return candidates;
}

/**
 * Returns why a request cannot be sent with its account, which is in quarantine, and for how long; undefined if the account is in
 * service, or if this request is its probe, which begins now. A quota of the upstream that is used up for longer is the reason, and no
 * probe begins.
 */
export function beginUse(ticket: Ticket, now: Millis): QuarantineRefusal | undefined {
  const { account, quotas } = ticket;
  if (account === undefined || !account.isQuarantined) return undefined;
  const untilProbe = Math.max(0, account.probeAt - now);
  const untilReset = quotas?.untilReset(ticket, now) ?? 0;
  if (untilReset > untilProbe) return { why: 'quota_exceeded', wait: untilReset };
  if (untilProbe > 0) return { why: 'blocked', wait: untilProbe };
  account.beginProbe(now);
  return undefined;
}

interface QuarantineRefusal {
  readonly why: Extract<RefusalReason, 'blocked' | 'quota_exceeded'>;
  readonly wait: Millis;
}

/**
 * Returns the tickets that wait at these limits with an account that is quarantined, or stopped for longer than they may wait, if they
 * may use another one. Those that lack only a connection have their tokens and stay.
 */
export function ticketsToMove(store: GateStore, limits: readonly Limit[], now: Millis): readonly Ticket[] {
  const stopped = limits.filter((limit) => limit.isAwaited && isStopped(store, limit, now));
  if (stopped.length === 0) return NO_TICKETS;
  const tickets = new Set(stopped.flatMap((limit) => [...waitingTickets(limit)]));
  return [...tickets].filter(
    (each) => each.account !== undefined && each.reservedLimits.length === 0 && each.pinnedAccount() === undefined,
  );
}

const NO_TICKETS: readonly Ticket[] = [];

/** Whether this is a limit of an account that is sent nothing for longer than a request may wait. */
function isStopped(store: GateStore, { ref, meter }: Limit, now: Millis): boolean {
  if (ref.scope !== 'credential') return false;
  const { accounts, queue } = store.upstream(ref.upstream); // it exists: requests wait
  if (accounts === undefined) return false;
  return meter.expectedDelay(now) > queue.maxWait || accounts.find(accountOf(ref))?.isQuarantined === true;
}

/** The name of the account that a limit of scope `credential` belongs to. */
function accountOf({ key }: Limit['ref']): string {
  const end = key.indexOf(' ');
  return end < 0 ? key : key.slice(0, end);
}

function useAccount(
  { store, waitQueue }: ChoiceContext,
  ticket: Ticket,
  account: Account | undefined,
  now: Millis,
): void {
  if (ticket.account !== account) ticket.forgetRequester();
  ticket.account = account;
  if (account === undefined) {
    ticket.limits = NO_LIMITS;
    return;
  }
  ticket.limitRefs = ticket.limitRefsWith(account.name);
  ticket.limits = resolveLimits(store, ticket.limitRefs);
  for (const limit of ticket.limits) waitQueue.advance(limit, now);
}
