import { delayOf, expectedAt, heldUntil, shareOf } from './wait-estimate.ts';
import type { LimitView } from '../events/proxy-events.ts';
import type { Limit } from '../limits/limit.ts';
import type { Block } from '../rate/breaker/active-block.ts';
import type { Room } from './connection-slots.ts';
import type { Store } from './gate-store.ts';
import type { Ticket } from './ticket.ts';
import type { Millis, PerSecond } from '../exchange/attempt-outcome.ts';

/** The numbers behind a decision, as they stand when it has just been made. */
export interface Grounds {
  /** Of those it stands under, the limit that makes it wait for longest, else the innermost; undefined while none has been felt. */
  readonly limit: LimitView | undefined;
  /** What is blocked at that limit, where this request is of it. */
  readonly block: Block | undefined;
  /** What an operator holds that limit at, here or where its tokens come from; undefined where none does. */
  readonly pinned: PerSecond | undefined;
  /** It waits, or would have to, for a connection and not for a token. */
  readonly forRoom: boolean;
  /** How long it was reckoned that it would wait, and how long it may; undefined where nobody had to reckon. */
  readonly estimate: Millis | undefined;
  readonly patience: Millis | undefined;
  /** What its client asks for, and its share of the limit by weight; undefined where nothing is shared. */
  readonly demand: PerSecond;
  readonly share: PerSecond | undefined;
  /** In (0, 1]: what its client's weight is scaled by. */
  readonly allowance: number;
  /** Requests of its client that wait there, itself included where it does. */
  readonly backlog: number;
  /** For how long the upstream asked this client to stay away; 0 when it did not. */
  readonly heldFor: Millis;
}

/** For those who ask why: costs something, and is asked for only where somebody did not simply pass. */
export function groundsOf(store: Store, ticket: Ticket, now: Millis): Grounds {
  const { clients } = store;
  const { slot } = ticket;
  const { activity, room } = store.upstream(ticket.upstream);
  const limit = tightestOf(ticket, now);
  const place = ticket.waitsAt ?? ticket.limits.at(-1) ?? room?.line;
  const rate = limit?.meter.rate(now) ?? Number.POSITIVE_INFINITY;
  const view = limit?.view(now);
  return {
    limit: view,
    block:
      limit?.meter.isBlocking === true && limit.meter.holds?.(now, ticket.source) === true ? view?.block : undefined,
    pinned: view?.pinned ?? (limit?.isPinnedElsewhere === true ? view?.rate : undefined),
    forRoom: room !== undefined && isForRoom(ticket, room, now),
    estimate: ticket.estimate,
    patience: ticket.patience,
    demand: slot === undefined ? 0 : clients.demand(slot, now),
    share:
      limit === undefined || !Number.isFinite(rate)
        ? undefined
        : isShared(limit)
          ? shareOf(ticket, limit, rate, activity, now)
          : undefined,
    allowance: slot === undefined ? 1 : clients.allowance(slot, now),
    backlog: slot === undefined || place === undefined ? 0 : place.queue.backlog(slot),
    heldFor: slot === undefined ? 0 : Math.max(0, heldUntil(clients, ticket, slot, now) - now),
  };
}

function tightestOf(ticket: Ticket, now: Millis): Limit | undefined {
  let tightest = ticket.limits.at(-1);
  let longest = tightest === undefined ? 0 : expectedAt(tightest, ticket, now);
  for (const limit of ticket.limits) {
    const expected = expectedAt(limit, ticket, now);
    if (expected <= longest) continue;
    tightest = limit;
    longest = expected;
  }
  return tightest;
}

/** Who asks for how much of a nested limit that several share, nobody knows. */
function isShared({ ref }: Limit): boolean {
  return ref.nested === '' || ref.scope !== 'upstream';
}

/** Of what it needs, a connection alone is lacking: its tokens it has, or could take now. */
function isForRoom(ticket: Ticket, room: Room, now: Millis): boolean {
  const { waitsAt, limits } = ticket;
  const limit = limits.at(-1);
  // In a line that is no limit of its own, it has paid.
  if (waitsAt === room.line && waitsAt !== limit) return true;
  if (waitsAt !== undefined && waitsAt !== room.line) return false;
  // While others wait for tokens, one may be due: it is theirs.
  if (limit !== undefined && limit !== room.line && limit.queue.size > 0) return false;
  // Under a limit that all share, those who lack a token stand in the same line: not while connections are free.
  const lacks = limit === room.line ? room.isFull : room.isAwaited;
  return lacks && delayOf(ticket, now) === 0;
}
