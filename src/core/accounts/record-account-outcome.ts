import type { Ticket } from '../admission/ticket.ts';
import type { EventSink } from '../events/proxy-events.ts';
import { type AttemptOutcome, isGatewayError, isThrottled } from '../exchange/attempt-outcome.ts';
import { classifyWrite } from '../idempotency/write-outcome.ts';
import type { Millis } from '../scalars.ts';
import type { AccountPool } from './account-pool.ts';
import type { Account, AccountChange } from './account.ts';
import type { QuarantineSettings } from './quarantine-settings.ts';

/** Request lacks valid credentials, so it "has not been applied" (RFC 9110 §15.5.2). */
export const UNAUTHORIZED = 401;

/** What an attempt says about its account; the `result` label of `tidegate_account_requests_total`. */
export type AccountResult = 'accepted' | 'throttled' | 'rejected' | 'failed';

interface Context {
  readonly ticket: Ticket;
  readonly upstream: { readonly accounts?: AccountPool | undefined };
  readonly emit: EventSink;
}

/**
 * Updates the quarantine of the account that an attempt was sent with:
 *
 * - A rejection of its credential counts. Several in a row exclude its client, because a single one may be about the request.
 * - If the same request is then accepted with another account, a 401 was about the account: its client is excluded at once. A 403 may
 *   be about an object that only some accounts can see, so it proves nothing.
 * - Throttling, a bad gateway and a failure show nothing: they may come from a hop that does not read the credential.
 * - A response from a cache shows nothing: the upstream sent it to an earlier request. Its Retry-After does not stop the account.
 * - A response to a credential that a reload has replaced shows nothing about the present one.
 *
 * Returns the other accounts that now exclude the client.
 */
export function recordAccountOutcome(
  { ticket, upstream: { accounts }, emit }: Context,
  outcome: AttemptOutcome,
  now: Millis,
): readonly Account[] {
  const { account, upstream, sentAt } = ticket;
  if (account === undefined) return NO_ACCOUNTS;
  if (ticket.isWrite && mayHaveHadEffect(outcome)) ticket.keptAccount ??= account.name;
  if (accounts === undefined) return NO_ACCOUNTS; // removed by a reload
  const { quarantine } = accounts;
  const result = accountResultOf(outcome, quarantine);
  emit({ type: 'account-result', upstream, account: account.name, result });
  ticket.throttledBy = result === 'throttled' ? account : undefined;
  if (outcome.kind === 'error') return NO_ACCOUNTS;
  const { status, hints } = outcome;
  const isFromCache = hints.isFromCache === true;
  if (result === 'throttled' && hints.limit === undefined && !isFromCache) {
    account.stoppedUntil = Math.max(account.stoppedUntil, now + (hints.retryAfterMs ?? 0));
  }
  const isEvidence = !isFromCache && ticket.sentCredential === account.credential && isConfigured(accounts, account);
  if (result === 'rejected') {
    (ticket.rejectedBy ??= new Map()).set(account, { sentAt, credential: ticket.sentCredential });
    ticket.isAccountProven = status === UNAUTHORIZED && !isFromCache && ticket.isAccountProven !== false;
    if (isEvidence) emitChange(emit, ticket, account, account.onRejected(ticket, sentAt, quarantine, now), status, now);
    return NO_ACCOUNTS;
  }
  if (result !== 'accepted' || isFromCache) return NO_ACCOUNTS;
  const since = account.quarantinedSince;
  if (isEvidence) emitChange(emit, ticket, account, account.onAccepted(sentAt), status, now, since);
  if (ticket.rejectedBy === undefined || ticket.isAccountProven !== true) return NO_ACCOUNTS;
  const excluded: Account[] = [];
  for (const [rejected, attempt] of ticket.rejectedBy) {
    const isCurrent = attempt.credential === rejected.credential && isConfigured(accounts, rejected);
    if (rejected === account || !isCurrent) continue;
    const change = rejected.onProvenInvalid(ticket, attempt.sentAt, quarantine, now);
    emitChange(emit, ticket, rejected, change, UNAUTHORIZED, now);
    excluded.push(rejected);
  }
  return excluded;
}

/** False if a reload has removed it: nothing would end its quarantine. */
function isConfigured(accounts: AccountPool, account: Account): boolean {
  return accounts.find(account.name) === account;
}

const NO_ACCOUNTS: readonly Account[] = [];

/** Statuses that a route lists as not processed count too: the retry of an unclear outcome loses nothing if it keeps its account. */
function mayHaveHadEffect(outcome: AttemptOutcome): boolean {
  return classifyWrite(UNKEYED, outcome, NO_STATUSES) === 'may_have_taken_effect';
}

const UNKEYED = { keyed: false, method: 'POST' } as const;
const NO_STATUSES: ReadonlySet<number> = new Set();

export function accountResultOf(outcome: AttemptOutcome, { statuses }: QuarantineSettings): AccountResult {
  if (outcome.kind === 'error') return 'failed';
  const { status, hints } = outcome;
  if (isThrottled(status, hints)) return 'throttled';
  if (statuses.has(status)) return 'rejected';
  return isGatewayError(status) ? 'failed' : 'accepted';
}

function emitChange(
  emit: EventSink,
  { upstream, client }: Ticket,
  account: Account,
  change: AccountChange | undefined,
  status: number,
  now: Millis,
  since: Millis = now,
): void {
  if (change === undefined) return;
  const { name, probeAt } = account;
  if (change === 'returned') emit({ type: 'account-returned', upstream, account: name, after: now - since });
  else emit({ type: 'account-quarantined', upstream, account: name, status, client, time: probeAt - now });
}
