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
 * The accounts that may be chosen for a ticket. Until its end, a request is sent as configured at its arrival: with an account, or without
 * one. While a ticket waits, as in observe mode also after its request was sent, its account is the one of its queue: undefined.
 */
export function accountsFor(
  ticket: Pick<Ticket, 'usesAccounts' | 'flow'>,
  { accounts }: { readonly accounts?: AccountPool | undefined },
): AccountPool | undefined {
  return ticket.usesAccounts && ticket.flow === undefined ? accounts : undefined;
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
 * the queue if it has to. Returns undefined if no other account may serve it, or the account that throttled it can do so sooner. A
 * rejected credential is a definite response, which no probe of another account delays.
 */
export function delayOfOtherAccount(
  context: ChoiceContext,
  ticket: Ticket,
  pool: AccountPool,
  result: 'throttled' | 'rejected',
  now: Millis,
): Millis | undefined {
  const { account } = ticket;
  if (account === undefined || ticket.pinnedAccount() !== undefined) return undefined;
  const candidates = candidatesOf(context, ticket, pool, now);
  useAccount(context, ticket, account, now);
  const best = chooseAccount(
    candidates.filter((each) => each.account !== account),
    now,
  );
  if (best === undefined || best.hasRejected) return undefined;
  const wait = waitOf(best, now);
  const { maxWait } = context.store.upstream(ticket.upstream).queue;
  if (wait <= maxWait && best.probeAt <= now) return 0;
  if (result === 'rejected') return best.probeAt > now ? undefined : wait;
  const first = chooseAccount(candidates, now);
  if (first?.account !== account || waitOf(first, now) >= wait) return wait;
  // Without a hint, a backoff would end before any account can take the request.
  return account.stoppedUntil > now || waitOf(first, now) <= maxWait ? undefined : wait;
}

/** Until the client may probe the ticket's account, if that excludes it; 0 if it may now, or is not excluded. */
export function untilProbe({ account, client }: Ticket, { quarantine }: AccountPool, now: Millis): Millis {
  return Math.max(0, (account?.useBy(client, quarantine).probeAt ?? now) - now);
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
      ...account.useBy(ticket.client, pool.quarantine),
      hasRejected: ticket.rejectedBy?.get(account)?.credential === account.credential,
      hasThrottled: ticket.throttledBy === account,
      inFlight: account.inFlight,
      lastUse: account.lastUse,
    });
  }
  return candidates;
}

/**
 * Returns why a request cannot be sent with its account, whose quarantine excludes its client, and for how long; undefined if it does
 * not, or if this request is its probe, which begins now. A quota of the upstream that is used up for longer is the reason, and no
 * probe begins.
 */
export function beginUse(ticket: Ticket, { quarantine }: AccountPool, now: Millis): QuarantineRefusal | undefined {
  const { account, quotas } = ticket;
  ticket.accountUse = undefined;
  if (account === undefined || !account.isQuarantined) return undefined;
  const { probeAt, trialAt = Number.POSITIVE_INFINITY } = account.useBy(ticket.client, quarantine);
  if (probeAt === Number.NEGATIVE_INFINITY) {
    if (trialAt <= now) reserveUse(ticket, account, 'trial', now);
    return undefined;
  }
  const untilProbe = Math.max(0, probeAt - now);
  const untilReset = quotas?.untilReset(ticket, now) ?? 0;
  if (untilReset > untilProbe) return { why: 'quota_exceeded', wait: untilReset };
  if (untilProbe > 0) return { why: 'blocked', wait: untilProbe };
  reserveUse(ticket, account, 'probe', now);
  return undefined;
}

function reserveUse(ticket: Ticket, account: Account, use: 'probe' | 'trial', now: Millis): void {
  account.beginUse(use, now);
  ticket.accountUse = use;
}

interface QuarantineRefusal {
  readonly why: Extract<RefusalReason, 'blocked' | 'quota_exceeded'>;
  readonly wait: Millis;
}

/** The limits of a ticket, and those that it would have with accounts that an outcome of it has excluded. */
export function limitsAfterOutcome(store: GateStore, ticket: Ticket, excluded: readonly Account[]): readonly Limit[] {
  if (excluded.length === 0) return ticket.limits;
  return [...ticket.limits, ...excluded.flatMap(({ name }) => resolveLimits(store, ticket.limitRefsWith(name)))];
}

/**
 * Returns the tickets that wait at these limits with an account that excludes their client, or is stopped for longer than they may
 * wait, if they may use another one. Those that lack only a connection have their tokens and stay. So do those whose requests were sent in
 * observe mode, before a reload: they keep the accounts of their attempts.
 */
export function ticketsToMove(store: GateStore, limits: readonly Limit[], now: Millis): readonly Ticket[] {
  let tickets: Set<Ticket> | undefined;
  for (const limit of limits) {
    if (!limit.isAwaited || limit.ref.scope !== 'credential') continue;
    const { accounts, queue } = store.upstream(limit.ref.upstream); // it exists: requests wait
    const account = accounts?.find(accountOf(limit.ref));
    if (accounts === undefined || account === undefined) continue;
    const isStopped = limit.meter.expectedDelay(now) > queue.maxWait;
    if (!isStopped && !account.isQuarantined) continue;
    tickets ??= new Set();
    for (const ticket of waitingTickets(limit)) {
      if (isStopped || excludes(account, ticket, accounts)) tickets.add(ticket);
    }
  }
  if (tickets === undefined) return NO_TICKETS;
  return [...tickets].filter(mayMove);
}

const NO_TICKETS: readonly Ticket[] = [];

function mayMove(ticket: Ticket): boolean {
  if (ticket.mode === 'observe' || ticket.account === undefined || ticket.inFlightAccount !== undefined) return false;
  return ticket.reservedLimits.length === 0 && ticket.pinnedAccount() === undefined;
}

/** The probe itself may use the account that excludes its client: no other probe may be sent within the interval. */
function excludes(account: Account, { client, accountUse }: Ticket, { quarantine }: AccountPool): boolean {
  return accountUse !== 'probe' && account.useBy(client, quarantine).probeAt !== Number.NEGATIVE_INFINITY;
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
