import type { GateStore } from '../admission/gate-store.ts';
import type { Ticket } from '../admission/ticket.ts';
import type { WaitQueue } from '../admission/wait-queue.ts';
import type { EventSink } from '../events/proxy-events.ts';
import type { Hints } from '../hints/hints.ts';
import type { Limit } from '../limits/limit.ts';
import { nestedLimitField } from '../limits/limit-ref.ts';
import { applyQuota, quotaLeftNow } from '../quota/apply-quota.ts';
import type { Millis } from '../scalars.ts';
import { bookUnits } from './queued-units.ts';
import { boundCost, type NamedCosts } from './cost-rule.ts';

/**
 * Corrects the charges of requests by the costs that their complete responses name. Where a response names none, the charge stands:
 * nothing that is shared depends on an estimate.
 */
export class CostSettlement {
  readonly #store: GateStore;
  readonly #waitQueue: WaitQueue;
  readonly #emit: EventSink;

  constructor(store: GateStore, waitQueue: WaitQueue, emit: EventSink) {
    this.#store = store;
    this.#emit = emit;
    this.#waitQueue = waitQueue;
  }

  /** May be called after the exchange has ended. Returns whether a charge was corrected. */
  settle(ticket: Ticket, named: NamedCosts, now: Millis): boolean {
    const { costs, upstream, sentAt } = ticket;
    let isCorrected = false;
    for (const cost of costs?.costs ?? []) {
      const { rule, charged, isPaced } = cost;
      const actual = boundCost(named.get(rule.limit), rule);
      if (actual === undefined || !cost.isOpen) continue;
      cost.isOpen = false;
      cost.actual = actual;
      const limit = this.#find(ticket, rule.limit);
      if (limit === undefined || costs === undefined || ticket.costAt(limit) !== cost) continue;
      if (isPaced) limit.meter.settle?.({ charged, actual, result: 'read' }, now);
      limit.meter.onCostKnown?.({ sentAt, counted: cost.counted, actual });
      this.#emit({
        type: 'cost-settled',
        upstream,
        route: costs.route,
        ...nestedLimitField(limit.ref),
        charged,
        actual,
      });
      if (!isPaced) continue;
      cost.isPaced = false;
      bookUnits(this.#store.clients, ticket, limit, { charged, actual }, now);
      this.#waitQueue.serveReadyWithin(limit, now);
      isCorrected = true;
    }
    return isCorrected;
  }

  /** Applies the level of a bucket that a response reports for a limit, in units. Under an overrun, it says nothing. */
  applyBucket(ticket: Ticket, name: string, level: NonNullable<Hints['quota']>, now: Millis): void {
    const limit = this.#find(ticket, name);
    if (limit === undefined) return;
    const cost = ticket.costAt(limit);
    if (cost === undefined || limit.mayBeOverrun(ticket.sentAt)) return;
    const left = quotaLeftNow(level, limit, cost);
    // A bucket refills all the time: an empty one is no spent quota, which stops everything until its reset.
    applyQuota(this.#store, limit, ticket, { ...left, remaining: Math.max(1, left.remaining) }, 200, now);
    this.#waitQueue.serveReadyWithin(limit, now);
  }

  /** A reload may have removed the upstream since the request was sent. */
  #find(ticket: Ticket, name: string): Limit | undefined {
    if (!this.#store.has(ticket.upstream)) return undefined;
    return ticket.limits.find(({ ref }) => ref.nested === name);
  }
}
