import type { ClientSlot } from '../admission/client-allowance.ts';
import type { LimitPlaces } from './limit-places.ts';
import type { LimitState } from './limit-state.ts';
import type { LimitView } from '../events/gate-views.ts';
import type { ProxyEvent } from '../events/proxy-events.ts';
import { weightInAddress } from '../admission/effective-weight.ts';
import { countTurn } from '../cost/queued-units.ts';
import { FairQueue } from '../collections/fair-queue.ts';
import type { ExternalOutcomes } from './external-outcomes.ts';
import type { LimitDemand } from './limit-demand.ts';
import { ProgressRate } from '../collections/progress-rate.ts';
import type { HeapItem } from '../collections/binary-heap.ts';
import { ClientHolds } from './client-holds.ts';
import type { LimitRef } from './limit-ref.ts';
import { isClassLimitRef, nestedLimitField } from './limit-ref.ts';
import type { Meter, MeterView } from './meter.ts';
import type { BlockedPart } from '../rate/breaker/request-attributes.ts';
import { classifyBlockedPart } from '../rate/breaker/request-attributes.ts';
import type { QuotaReview } from '../quota/quota-review.ts';
import { ReturnSlots } from './return-slots.ts';
import { OverrideMeter } from './override-meter.ts';
import type { OperatorOverride } from './operator-override.ts';
import { isOverridden } from './operator-override.ts';
import type { Ticket } from '../admission/ticket.ts';
import { CrossQueueScheduler } from '../collections/cross-queue-scheduler.ts';
import type { Millis, PerSecond } from '../scalars.ts';

type LimitStateChange = Extract<ProxyEvent, { readonly type: 'limit-state' }>;

/** How long an overrun affects results. The effect of one on a longer window is not detected. */
const OVERRUN_WINDOW: Millis = 5000;

/** One limit: its meter, the queue of tickets that wait for its tokens, and the return slots of refused clients. */
export class Limit extends ReturnSlots implements HeapItem {
  readonly ref: LimitRef;
  /** Whether it belongs to a client class. The upstream does not enforce it, so no outcome counts against it. */
  readonly isClassLimit: boolean;
  /** The learned meter, or an `OverrideMeter` around it. */
  meter: Meter;
  /** The meter that learns, without an override. */
  readonly learnedMeter: Meter;
  /** A list of this limit alone, so that a request with a single limit allocates none. */
  readonly asList: readonly Limit[] = [this];
  /** The tickets whose innermost limit this is. */
  readonly queue = new FairQueue<Ticket>();
  /** How fast the virtual time of the queue advances while clients are refused. */
  readonly turnProgress = new ProgressRate();
  /** Limits nested in this one whose queues are not empty. Created on first use: limits of clients are many. */
  nestedWithWaiters: Set<Limit> | undefined = undefined;
  /** Limits that list this one in their `nestedWithWaiters`. */
  #outerLimits: Set<Limit> | undefined = undefined;
  /** Whether the tickets of the queue have different limits, so that one without a token must not block the others. */
  hasMixedLimits = false;
  /** Clients that the upstream asked to stay away from this limit. Created on first use. */
  clientHolds: ClientHolds | undefined = undefined;
  /** Fairness across the queues that share this limit. Created on first use. */
  #scheduler: CrossQueueScheduler | undefined = undefined;
  /** When its queue may have a ready ticket. Like `heapIndex`, it belongs to the `WaitQueue`. */
  wakeAt: Millis = Number.POSITIVE_INFINITY;
  heapIndex = -1;
  /** The clients that wait or are to return. Present only where processes divide the limit by the weights of their clients. */
  demand: LimitDemand | undefined = undefined;
  /** Who holds its places in flight. Set once it limits their number, if clients share it. */
  places: LimitPlaces | undefined = undefined;
  /** When a request last did not have to wait for a place in flight, as far as this process knows. */
  placeFreeAt: Millis = Number.POSITIVE_INFINITY;
  /** In observe mode: when a request was last sent that would have been queued or refused. */
  overrunAt = Number.NEGATIVE_INFINITY;
  /** Outcomes of granted requests that others send. Created on first use. */
  externalOutcomes: ExternalOutcomes | undefined = undefined;
  /** Whether an operator has pinned its rate at the process that leases its tokens. */
  isPinnedElsewhere = false;
  /** The check of waiting tickets against a quota that has come into force, until it is complete. */
  quotaReview: QuotaReview | undefined = undefined;
  /** Whether a quota was in force at the last update of a leased limit. */
  wasQuotaInForce = false;
  /** The state in the last `limit-state` event. */
  reportedState: LimitState;
  /** What was blocked at that event; undefined if nothing was. */
  #reportedBlock: BlockedPart | undefined = undefined;
  readonly #initialCeiling: PerSecond;

  constructor(ref: LimitRef, meter: Meter) {
    super();
    this.ref = ref;
    this.isClassLimit = isClassLimitRef(ref);
    this.meter = meter;
    this.learnedMeter = meter;
    this.reportedState = meter.phase;
    this.#initialCeiling = meter.ceiling;
  }

  /** Applies an operator's override from now on. */
  setOverride(override: OperatorOverride, now: Millis): void {
    if (!(this.meter instanceof OverrideMeter)) {
      if (!isOverridden(override, now)) return;
      this.meter = new OverrideMeter(this.learnedMeter);
    }
    if (this.meter instanceof OverrideMeter) this.meter.setOverride(override, now);
  }

  enqueue(ticket: Ticket, slot: ClientSlot, weight: number, now: Millis): void {
    const first = this.queue.front;
    if (first !== undefined && !areSameLimits(first.limits, ticket.limits)) this.hasMixedLimits = true;
    this.queue.push(slot, weight, ticket, now, ticket.addressGroup, weightInAddress(weight, ticket));
    ticket.waitingLimit = this;
    this.demand?.onQueued(ticket.fairnessKey, ticket.wholeWeight, ticket.client);
    for (const outer of ticket.limits) {
      if (outer === this) continue;
      outer.demand?.onQueued(ticket.fairnessKey, ticket.wholeWeight, ticket.client);
      (outer.nestedWithWaiters ??= new Set()).add(this);
      (this.#outerLimits ??= new Set()).add(outer);
    }
  }

  /** Removes a ticket that is being served. @param weight its present one in this queue */
  serve(ticket: Ticket, weight: number, now: Millis): void {
    this.queue.updateWeight(ticket, weight, weightInAddress(weight, ticket));
    // Where it waits only for a connection, it has its tokens: it counts as one request.
    this.queue.take(ticket, ticket.limits.at(-1) === this ? countTurn(this, ticket, now) : 1);
    this.#onDequeued(ticket, ticket.wholeWeight);
  }

  /** Removes a ticket that will not be served. */
  dequeue(ticket: Ticket): void {
    this.queue.remove(ticket);
    this.#onDequeued(ticket);
  }

  /** Whether a request sent then may have met a limit that was overrun, by observe mode or by a pinned rate. */
  mayBeOverrun(sentAt: Millis): boolean {
    return this.isPinnedElsewhere || sentAt - this.overrunAt < OVERRUN_WINDOW;
  }

  /** Whether requests wait at it, or at a limit nested in it. */
  get isAwaited(): boolean {
    return this.queue.size > 0 || (this.nestedWithWaiters !== undefined && this.nestedWithWaiters.size > 0);
  }

  /** What earlier requests have cost delays no turn any more: it is paid for, or was counted in another unit. */
  forgiveCosts(): void {
    this.queue.forgiveCosts();
    this.#scheduler?.forgiveCosts();
  }

  get scheduler(): CrossQueueScheduler {
    return (this.#scheduler ??= new CrossQueueScheduler());
  }

  /** The total weight of the clients that wait for it, here or at limits nested in it, or are to return; 0 if it is not shared. */
  demandWeight(now: Millis): number {
    return this.demand?.totalWeight(now) ?? 0;
  }

  /** Keeps a client away until `until`. @param key see `ClientHolds.add` */
  holdClient(key: string, until: Millis, now: Millis): void {
    this.clientHolds ??= new ClientHolds();
    this.clientHolds.add(key, until, now);
  }

  /** Whether nothing passes, or only a probe. */
  isBlocked(now: Millis): boolean {
    return isBlocked(this.meter, now);
  }

  /** Whether evicting the limit would lose anything learned. */
  get hasLearned(): boolean {
    const { phase, ceiling } = this.learnedMeter;
    return phase !== 'open' && (phase !== 'restoring' || ceiling !== this.#initialCeiling);
  }

  get isBlockedByOperator(): boolean {
    return this.meter instanceof OverrideMeter && this.meter.isBlockedByOperator;
  }

  /** Returns the event of a state change since the last call; undefined if there was none. */
  takeStateChange(now: Millis): LimitStateChange | undefined {
    const from = this.reportedState;
    const to = this.meter.phase;
    const block = this.meter.block?.(now);
    const before = this.#reportedBlock;
    // The scope of a block may change often, which is no change of state.
    if (from === to && (block === undefined) === (before === undefined)) return undefined;
    this.reportedState = to;
    this.#reportedBlock = block === undefined ? undefined : classifyBlockedPart(block.scope);
    const { upstream, scope } = this.ref;
    const blocked =
      block === undefined
        ? before === undefined
          ? {}
          : { unblocked: before }
        : { blocked: classifyBlockedPart(block.scope), blockedCause: block.cause };
    const rate = currentRate(this.meter, now);
    return { type: 'limit-state', upstream, ...nestedLimitField(this.ref), scope, from, to, rate, ...blocked };
  }

  /** @param meter pass `learnedMeter` to leave an override out */
  view(now: Millis, meter: MeterView = this.meter): LimitView {
    const blocked = isBlocked(meter, now);
    return {
      ...this.ref,
      state: blocked ? 'blocked' : meter.phase,
      rate: currentRate(meter, now),
      ceiling: meter.ceiling,
      unit: meter.unit,
      concurrencyLimit: meter.concurrencyLimit,
      latencyLimit: meter.latencyLimit,
      blockedUntil: blocked ? meter.blockedUntil : undefined,
      block: meter.block?.(now),
      quotaLeft: meter.quotaLeft,
      quotaOwner: meter.quotaOwner(now),
      queued: this.queue.size,
      inFlight: meter.inFlight,
      cooldownUntil: meter.cooldownUntil,
      isProbed: meter.phase === 'blocked' ? true : undefined,
      ...(meter instanceof OverrideMeter
        ? {
            pinnedRate: meter.pinnedRate,
            learnedRate: meter.learnedRate(now),
            isBlockedByOperator: meter.isBlockedByOperator,
          }
        : {}),
    };
  }

  #onDequeued(ticket: Ticket, weight?: number): void {
    ticket.waitingLimit = undefined;
    const { fairnessKey, client } = ticket;
    this.demand?.onDequeued(fairnessKey, weight, client);
    for (const outer of ticket.limits) if (outer !== this) outer.demand?.onDequeued(fairnessKey, weight, client);
    if (this.queue.size > 0) return;
    this.hasMixedLimits = false;
    if (this.#outerLimits === undefined) return;
    for (const outer of this.#outerLimits) outer.nestedWithWaiters?.delete(this);
    this.#outerLimits.clear();
  }
}

function areSameLimits(a: readonly Limit[], b: readonly Limit[]): boolean {
  return a === b || (a.length === b.length && a.every((limit, i) => limit === b[i]));
}

/** The rate of all processes that share the limit. */
function currentRate(meter: MeterView, now: Millis): PerSecond {
  return meter.sharedRate?.(now) ?? meter.rate(now);
}

function isBlocked({ phase, blockedUntil }: MeterView, now: Millis): boolean {
  return phase === 'blocked' || (blockedUntil ?? now) > now;
}
