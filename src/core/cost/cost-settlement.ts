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
import type { CostResult } from '../rate/failed-send.ts';
import { largestCharge } from '../rate/pacer.ts';
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
      expectedCosts?.record(costs.route, name, ticket.client, actual, cost.rule.expected);
      if (this.#correct(ticket, cost, actual, 'read', now)) isCorrected = true;
    }
    return isCorrected;
  }

  /**
   * Settles the attempt at limits for which its response does not show the cost: by the mean and the spread of its route, if that is
   * more than the charge. Else a client could buy expensive requests at the price of cheap ones, and hide the costs.
   */
  settleUnread(ticket: Ticket, limits: readonly string[], now: Millis): void {
    const { costs } = ticket;
    if (costs === undefined) return;
    const { expectedCosts } = this.#store.upstream(ticket.upstream);
    for (const cost of costs.costs) {
      const { limit: name } = cost.rule;
      if (!cost.isOpen || !limits.includes(name)) continue;
      const estimate = boundCost(expectedCosts?.ofUnread(costs.route, name), cost.rule) ?? 0;
      expectedCosts?.forgetClient(costs.route, name, ticket.client);
      this.#correct(ticket, cost, Math.max(cost.charged, estimate), 'estimated', now);
    }
  }

  /** Corrects the charges of an attempt that has an outcome without a response to read: rejected, not sent, or without any response. */
  settleOutcome(ticket: Ticket, outcome: AttemptOutcome, now: Millis): void {
    const { costs } = ticket;
    if (costs === undefined) return;
    const isRejected = outcome.kind === 'response' && isThrottled(outcome.status, outcome.hints);
    if (outcome.kind === 'response' && !isRejected) return;
    const isSent = outcome.kind === 'response' || outcome.sent;
    const limits = costs.costs.map(({ rule }) => rule.limit);
    if (isSent && !isRejected) return this.settleUnread(ticket, limits, now);
    for (const cost of costs.costs) {
      if (cost.isOpen) this.#correct(ticket, cost, 0, isRejected ? 'rejected' : 'unsent', now);
    }
  }

  /** Corrects one charge. Returns whether its limit still exists for the ticket. */
  #correct(ticket: Ticket, cost: LimitCost, actual: number, result: CostResult, now: Millis): boolean {
    const { charged } = cost;
    cost.isOpen = false;
    cost.actual = actual;
    const limit = ticket.limits.find(({ ref }) => ref.nested === cost.rule.limit);
    if (limit === undefined) return false;
    const { upstream, costs, sentAt } = ticket;
    limit.meter.settle?.({ sentAt, charged, actual, result }, now);
    if (result === 'read' && costs !== undefined) {
      const { route } = costs;
      this.#emit({ type: 'cost-settled', upstream, route, ...nestedLimitField(limit.ref), charged, actual });
    }
    // A rejected request has had its turn. If the turn were given back, expensive requests would be sent and rejected more often.
    if (result !== 'rejected') this.#chargeClient(ticket, limit, actual - charged, now);
    if (result === 'read') this.#waitQueue.serveReadyWithin(limit, now);
    return true;
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
    const largest = largestCharge(limit.meter.rate(now));
    const bounded = Math.min(largest, Math.max(-largest, units));
    limit.queue.settle(slot, ticket.wholeWeight, bounded, ticket.addressGroup, largest);
    clients.leave(slot);
    if (limit.nestedWithWaiters === undefined) return;
    limit.scheduler.settle(ticket.fairnessKey, ticket.wholeWeight, bounded, largest);
  }
}
