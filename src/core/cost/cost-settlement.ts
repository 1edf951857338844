import type { GateStore } from '../admission/gate-store.ts';
import type { Ticket } from '../admission/ticket.ts';
import type { WaitQueue } from '../admission/wait-queue.ts';
import type { EventSink } from '../events/proxy-events.ts';
import type { AttemptOutcome } from '../exchange/attempt-outcome.ts';
import { isThrottled } from '../exchange/attempt-outcome.ts';
import type { Hints } from '../hints/hints.ts';
import type { Limit } from '../limits/limit.ts';
import { nestedLimitField } from '../limits/limit-ref.ts';
import { applyQuota } from '../quota/apply-quota.ts';
import type { Millis } from '../scalars.ts';
import { boundCost, type NamedCosts } from './cost-rule.ts';
import type { LimitCost } from './request-costs.ts';

/** Corrects the charges of requests by what their responses say they have cost. */
export class CostSettlement {
  readonly #store: GateStore;
  readonly #waitQueue: WaitQueue;
  readonly #emit: EventSink;

  constructor(store: GateStore, waitQueue: WaitQueue, emit: EventSink) {
    this.#store = store;
    this.#emit = emit;
    this.#waitQueue = waitQueue;
  }

  /**
   * Settles the attempt by the costs that its response names; where it names none, the charge stands. May be called after the
   * exchange has ended. Returns whether a charge was corrected.
   */
  settle(ticket: Ticket, named: NamedCosts, now: Millis): boolean {
    const { costs } = ticket;
    if (costs === undefined) return false;
    const { expectedCosts } = this.#store.upstream(ticket.upstream);
    let isCorrected = false;
    for (const cost of costs.costs) {
      const { limit: name } = cost.rule;
      const actual = boundCost(named.get(name), cost.rule);
      if (actual === undefined || !cost.isOpen) continue;
      expectedCosts?.record(costs.route, name, ticket.client, actual);
      const limit = ticket.limits.find(({ ref }) => ref.nested === name);
      correct(limit, cost, { actual, sentAt: ticket.sentAt, isRejected: false }, now);
      if (limit === undefined) continue;
      isCorrected = true;
      const { upstream } = ticket;
      const { charged } = cost;
      this.#emit({
        type: 'cost-settled',
        upstream,
        route: costs.route,
        ...nestedLimitField(limit.ref),
        charged,
        actual,
      });
      this.#chargeClient(ticket, limit, actual - cost.charged, now);
      this.#waitQueue.serveReadyWithin(limit, now);
    }
    return isCorrected;
  }

  /** Applies the level of a bucket that a response reports for a limit, in units. */
  applyBucket(ticket: Ticket, name: string, level: NonNullable<Hints['quota']>, now: Millis): void {
    const limit = ticket.limits.find(({ ref }) => ref.nested === name);
    if (limit === undefined) return;
    applyQuota(this.#store, limit, ticket, level, 200, now);
    this.#waitQueue.serveReadyWithin(limit, now);
  }

  /** The next turn of the client comes later, or sooner, if others wait: otherwise nobody has had less because of its request. */
  #chargeClient(ticket: Ticket, limit: Limit, units: number, now: Millis): void {
    if (!limit.isAwaited || units === 0) return;
    const { clients } = this.#store;
    const slot = clients.visit(ticket.client, now, ticket.upstream); // its exchange may be over
    limit.queue.settle(slot, ticket.wholeWeight, units, ticket.addressGroup);
    clients.leave(slot);
    if (limit.nestedWithWaiters !== undefined) limit.scheduler.settle(ticket.fairnessKey, ticket.wholeWeight, units);
  }
}

/** Gives back the charges of an attempt that the upstream has rejected, or that was not sent, where responses name the cost. */
export function refundCosts(ticket: Ticket, outcome: AttemptOutcome, now: Millis): void {
  const { costs, sentAt, limits } = ticket;
  if (costs === undefined) return;
  const isRejected = outcome.kind === 'response' && isThrottled(outcome.status, outcome.hints);
  if (!isRejected && (outcome.kind === 'response' || outcome.sent)) return;
  for (const cost of costs.costs) {
    if (!cost.isOpen) continue;
    const limit = limits.find(({ ref }) => ref.nested === cost.rule.limit);
    correct(limit, cost, { actual: 0, sentAt, isRejected }, now);
  }
}

function correct(
  limit: Limit | undefined,
  cost: LimitCost,
  { actual, sentAt, isRejected }: { readonly actual: number; readonly sentAt: Millis; readonly isRejected: boolean },
  now: Millis,
): void {
  cost.isOpen = false;
  cost.actual = actual;
  limit?.meter.settle?.({ sentAt, charged: cost.charged, actual, isRejected }, now);
}
