import type { AccountPool } from '../accounts/account-pool.ts';
import { fairShare } from './active-clients.ts';
import { tokenDelay, expectedDelayAt, clientHeldUntil } from './wait-estimate.ts';
import type { LimitView } from '../events/gate-views.ts';
import type { Limit } from '../limits/limit.ts';
import { placeYieldDelay } from '../limits/limit-places.ts';
import type { SpentQuota } from '../quota/calendar/spent-quota.ts';
import type { SpentClientQuota } from '../quota/clients/client-quotas.ts';
import type { BlockStatus } from '../rate/breaker/active-block.ts';
import type { ConnectionSlots } from './connection-slots.ts';
import type { GateStore } from './gate-store.ts';
import type { ReturnSlotKind } from './gate-decision.ts';
import type { Ticket } from './ticket.ts';
import type { Millis, PerSecond } from '../scalars.ts';

/** The figures behind a decision, at the time it was made. */
export interface DecisionDetails {
  /** The limit that delays the request longest, else the innermost; undefined if the request has no limit yet. */
  readonly limit: LimitView | undefined;
  /** The block in force at that limit, if it holds back this request. */
  readonly block: BlockStatus | undefined;
  /** The rate that an operator has pinned for that limit, here or at the process that leases its tokens. */
  readonly pinnedRate: PerSecond | undefined;
  /** The quota that is used up for longest: one of the client or its class, else one of the upstream; absent if there is none. */
  readonly quota?: SpentQuota | SpentClientQuota | undefined;
  /** The account that it would be sent with, and how long its quarantine excludes the client, ≥ 0; absent without accounts. */
  readonly account?: { readonly name: string; readonly quarantinedFor: Millis };
  /** Whether it waits, or would have to wait, for a connection and not for a token. */
  readonly waitsForConnection: boolean;
  /** Whether connections are free, and it leaves them to others: see `SharedPlaces.yieldDelay`. */
  readonly leavesConnections?: boolean;
  /** The same of places in flight. */
  readonly leavesPlaces?: boolean;
  /** The estimate of its wait, and the longest wait allowed; undefined if the decision needed neither. */
  readonly estimatedWait: Millis | undefined;
  readonly maxWait: Millis | undefined;
  /** The timeout of its client, if that determines the longest wait. */
  readonly clientTimeout?: Millis | undefined;
  /** The demand of its client, in requests a second, and its share of the limit by weight; undefined if nothing is shared. */
  readonly demand: PerSecond;
  readonly share: PerSecond | undefined;
  /** The client's allowance, in (0, 1]. */
  readonly allowance: number;
  /** Waiting requests of its client in that queue, this one included. */
  readonly clientBacklog: number;
  /** How long the upstream asked this client to stay away; 0 if it did not. */
  readonly heldFor: Millis;
  /** Of a refusal: why its Retry-After is later than the end of the wait; undefined if it is not. */
  readonly returnSlot: ReturnSlotKind | undefined;
}

/** Returns the figures behind the last decision on a ticket. Too costly for requests that are admitted at once. */
export function readDecisionDetails(store: GateStore, ticket: Ticket, now: Millis): DecisionDetails {
  const { clients } = store;
  const { clientSlot } = ticket;
  const { activeClients, connectionSlots, accounts } = store.upstream(ticket.upstream);
  const limit = tightestLimit(ticket, now);
  const queueLimit = ticket.waitingLimit ?? ticket.limits.at(-1) ?? connectionSlots?.queueLimit;
  const rate = limit?.meter.rate(now) ?? Number.POSITIVE_INFINITY;
  const view = limit?.view(now);
  return {
    limit: view,
    block: limit === undefined ? undefined : findBlock(limit, view?.block, ticket, now),
    ...(accounts === undefined ? {} : describeAccount(ticket, accounts, now)),
    pinnedRate: view?.pinnedRate ?? (limit?.isPinnedElsewhere === true ? view?.rate : undefined),
    quota: ticket.clientQuota?.findSpent(now) ?? ticket.quotas?.findSpent(ticket, now),
    waitsForConnection: connectionSlots !== undefined && lacksOnlyConnection(ticket, connectionSlots, now),
    leavesConnections:
      connectionSlots !== undefined && !connectionSlots.isFull && connectionSlots.yieldDelay(ticket, now) > 0,
    leavesPlaces: placeYieldDelay(ticket, now) > 0,
    estimatedWait: ticket.estimatedWait,
    maxWait: ticket.maxWait,
    clientTimeout: ticket.clientTimeout,
    demand: clientSlot === undefined ? 0 : clients.demand(clientSlot, now),
    share:
      limit === undefined || !Number.isFinite(rate)
        ? undefined
        : isShared(limit)
          ? fairShare(ticket, limit, rate, activeClients, now)
          : undefined,
    allowance: clientSlot === undefined ? 1 : clients.allowance(clientSlot, now),
    clientBacklog: clientSlot === undefined || queueLimit === undefined ? 0 : queueLimit.queue.queuedBy(clientSlot),
    heldFor: clientSlot === undefined ? 0 : Math.max(0, clientHeldUntil(clients, ticket, clientSlot, now) - now),
    returnSlot: ticket.returnSlot,
  };
}

function describeAccount(
  { account, client }: Ticket,
  { quarantine }: AccountPool,
  now: Millis,
): Pick<DecisionDetails, 'account'> {
  if (account === undefined) return {};
  const { probeAt } = account.useBy(client, quarantine);
  return { account: { name: account.name, quarantinedFor: Math.max(0, probeAt - now) } };
}

/** The block that holds back the request. Thousands of details are kept, so it is the `latest` of the limit's view if it is the same. */
function findBlock(
  { meter }: Limit,
  latest: BlockStatus | undefined,
  ticket: Ticket,
  now: Millis,
): BlockStatus | undefined {
  if (meter.hasBlock !== true || meter.isHeldBack?.(now, ticket.attributes) !== true) return undefined;
  const block = meter.block?.(now, ticket.attributes);
  return block?.scope === latest?.scope ? latest : block;
}

function tightestLimit(ticket: Ticket, now: Millis): Limit | undefined {
  let tightest = ticket.limits.at(-1);
  let longest = tightest === undefined ? 0 : expectedDelayAt(tightest, ticket, now);
  for (const limit of ticket.limits) {
    const expected = expectedDelayAt(limit, ticket, now);
    if (expected <= longest) continue;
    tightest = limit;
    longest = expected;
  }
  return tightest;
}

/** Whether the shares of a limit are known. Demand is not counted per nested limit that several clients share. */
function isShared({ ref }: Limit): boolean {
  return ref.nested === '' || ref.scope !== 'upstream';
}

/** Whether the ticket lacks only a connection: it has its tokens, or could take them now. */
function lacksOnlyConnection(ticket: Ticket, slots: ConnectionSlots, now: Millis): boolean {
  const { waitingLimit, limits } = ticket;
  const limit = limits.at(-1);
  // In a queue that is not its own limit's, it has its tokens.
  if (waitingLimit === slots.queueLimit && waitingLimit !== limit) return true;
  if (waitingLimit !== undefined && waitingLimit !== slots.queueLimit) return false;
  // An available token belongs to the tickets that wait for one.
  if (limit !== undefined && limit !== slots.queueLimit && limit.queue.size > 0) return false;
  // Under the shared limit, tickets that lack a token wait in the same queue: it says nothing while connections are free.
  const lacks = limit === slots.queueLimit ? !slots.hasFreeFor(ticket, now) : slots.mustWait(ticket, now);
  return lacks && tokenDelay(ticket, now) === 0;
}
