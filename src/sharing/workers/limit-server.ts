import type { ClientHold } from '../../core/limits/client-holds.ts';
import { limitId } from '../../core/limits/limit-ref.ts';
import type { LimitView } from '../../core/events/gate-views.ts';
import type { EventSink } from '../../core/events/proxy-events.ts';
import { BinaryHeap } from '../../core/collections/binary-heap.ts';
import type { Limit } from '../../core/limits/limit.ts';
import type { LimitRef } from '../../core/limits/limit-ref.ts';
import type { LocalMeter } from '../../core/limits/local-meter.ts';
import type { OverrideChange, OperatorOverride } from '../../core/limits/operator-override.ts';
import { applyOverride, NO_OVERRIDE } from '../../core/limits/operator-override.ts';
import type { Millis } from '../../core/scalars.ts';
import { restoreStop } from '../../core/limits/meter-stop.ts';
import type { LearnedState } from '../../store/persistence/learned-state.ts';
import { KeptUpdates } from './kept-updates.ts';
import { LimitFamilies } from './limit-families.ts';
import type { WorkerId } from './worker-account.ts';
import type { LeaseTiming } from './lease-timing.ts';
import { WorkerSharedLimit } from './worker-shared-limit.ts';
import type { LimitUpdate, UsageReport, LimitUpdates } from './worker-protocol.ts';

export interface LimitServerParts {
  readonly timing: LeaseTiming;
  /** Returns undefined if the limit is no longer configured. */
  readonly makeMeter: (ref: LimitRef) => LocalMeter | undefined;
  /** Receives each decrease and each change of state once. */
  readonly listen: EventSink;
  readonly send: (to: WorkerId, updates: LimitUpdates) => void;
  /** The maximum number of limits of single clients or credentials. */
  readonly maxLimits: number;
}

/**
 * Keeps the limits that several workers share: learns from their reports, and leases tokens to them, each of which admits
 * one request at one time. Pure: the time is an argument, and `nextWake` returns when `wake` is due.
 */
export class LimitServer {
  readonly #parts: LimitServerParts;
  readonly #workers = new Set<WorkerId>();
  readonly #limits = new Map<string, WorkerSharedLimit>();
  readonly #wakes = new BinaryHeap<WorkerSharedLimit>((a, b) => a.wakeAt < b.wakeAt);
  readonly #kept = new KeptUpdates();
  /** The overrides of operators, by upstream. */
  readonly #overrides = new Map<string, OperatorOverride>();
  readonly #families: LimitFamilies;

  /** @param shared limits that exist from the start; the others are made when they are first reported */
  constructor(parts: LimitServerParts, shared: Iterable<LimitRef>) {
    this.#parts = parts;
    this.#families = new LimitFamilies(parts.maxLimits);
    for (const ref of shared) this.#make(ref);
  }

  get bound(): { readonly used: number; readonly reached: number } {
    return this.#families.bound;
  }

  /** Adds a worker, and sends it the terms of all limits. */
  join(workerId: WorkerId, now: Millis): void {
    this.#workers.add(workerId);
    for (const limit of this.#limits.values()) limit.join(workerId, now);
    const kept = this.#kept.forJoin(now);
    if (kept !== undefined) this.#parts.send(workerId, kept);
    const limiting = [...this.#limits.values()].filter((limit) => !limit.isUnlimited(now));
    this.#sendUpdates(limiting, now);
  }

  /** Removes a worker that has ended, with its tokens and its requests in flight. */
  leave(workerId: WorkerId, now: Millis): void {
    this.#workers.delete(workerId);
    for (const limit of this.#limits.values()) {
      limit.leave(workerId);
      limit.grantTokens(now);
      this.#scheduleWake(limit);
    }
    this.#sendUpdates(this.#limits.values(), now);
  }

  onReport(workerId: WorkerId, report: UsageReport, now: Millis): void {
    if (!this.#workers.has(workerId)) return; // a late report of a worker that has ended
    this.#forward(workerId, report, now);
    const touched: WorkerSharedLimit[] = [];
    for (const limitReport of report.limits) {
      const limit = this.#find(limitReport.ref, now);
      if (limit === undefined) continue;
      limit.applyReport(workerId, limitReport, now);
      touched.push(limit);
    }
    this.#grantAndUpdate(touched, now);
  }

  /**
   * Applies an operator's change to the upstream's own limits, present and future. `unblock` also allows a probe at once, on
   * nested limits too.
   */
  applyOverride(upstream: string, change: OverrideChange, now: Millis): void {
    const override = applyOverride(this.#overrides.get(upstream) ?? NO_OVERRIDE, change);
    this.#overrides.set(upstream, override);
    const touched = [...this.#limits.values()].filter(({ limit }) => limit.ref.upstream === upstream);
    for (const limit of touched) {
      if (limit.limit.ref.nested === '') limit.setOverride(override, now);
      if (change.action === 'unblock') limit.probeNow(now);
    }
    this.#grantAndUpdate(touched, now);
  }

  /** Forgets the holds of a client. */
  resetClient(client: string): void {
    this.#kept.heldClients.remove(client);
  }

  /** When `wake` is due; undefined if no worker waits for a token. */
  nextWake(): Millis | undefined {
    return this.#wakes.peek()?.wakeAt;
  }

  wake(now: Millis): void {
    const due: WorkerSharedLimit[] = [];
    for (let limit = this.#wakes.peek(); limit !== undefined && limit.wakeAt <= now; limit = this.#wakes.peek()) {
      this.#wakes.remove(limit);
      limit.reclaimSilent(now);
      due.push(limit);
    }
    this.#grantAndUpdate(due, now);
  }

  /** All limits in their current state; their queues are in the workers. */
  view(now: Millis): LimitView[] {
    const views: LimitView[] = [];
    for (const limit of this.limits(now)) views.push(limit.view(now));
    return views;
  }

  /** The limits as they were learned, without overrides of operators. */
  *learnedViews(now: Millis): Iterable<LimitView> {
    for (const each of this.#limits.values()) {
      each.advance(now);
      yield each.limit.view(now, each.meter);
    }
  }

  *limits(now: Millis): Iterable<Limit> {
    for (const each of this.#limits.values()) {
      each.advance(now);
      yield each.limit;
    }
  }

  /** The overrides in force, as changes for a worker that starts later. */
  overrideCommands(now: Millis): readonly { readonly upstream: string; readonly order: OverrideChange }[] {
    return [...this.#overrides].flatMap(([upstream, { pinnedRate, blockedUntil }]) => [
      ...(pinnedRate === undefined ? [] : [{ upstream, order: { action: 'pin', rate: pinnedRate } as const }]),
      ...(blockedUntil <= now ? [] : [{ upstream, order: { action: 'block', until: blockedUntil } as const }]),
    ]);
  }

  /** Adds limits that exist from now on, and applies changed settings to all. @param shared see the constructor */
  onSettingsChanged(shared: Iterable<LimitRef>, now: Millis): void {
    for (const ref of shared) this.#find(ref, now);
    const kept = this.#kept.forReload();
    if (kept !== undefined) for (const worker of this.#workers) this.#parts.send(worker, kept);
    this.#grantAndUpdate([...this.#limits.values()], now);
  }

  /**
   * Drops all other limits, which no request uses any more.
   * @param isKnown whether an upstream is configured: the overrides of others are dropped too
   */
  retain(isKept: (ref: LimitRef) => boolean, isKnown: (upstream: string) => boolean): void {
    this.#kept.retain(isKnown);
    for (const upstream of this.#overrides.keys()) if (!isKnown(upstream)) this.#overrides.delete(upstream);
    for (const each of this.#limits.values()) if (!isKept(each.limit.ref)) this.#drop(each);
  }

  /** Clients that have to wait, `max` at most. */
  activeHolds(max: number, now: Millis): ClientHold[] {
    return this.#kept.heldClients.active(max, now);
  }

  /** Restores what an earlier process learned, before any worker joins. */
  restore({ limits, holds }: LearnedState, now: Millis): void {
    for (const learned of limits) {
      const { ref, rate, ceiling, concurrencyLimit } = learned;
      const meter = this.#find(ref, now)?.meter;
      if (rate !== undefined) meter?.resume(rate, ceiling ?? rate, now, concurrencyLimit);
      if (meter !== undefined) restoreStop(meter, learned, now);
    }
    this.#kept.heldClients.restore(holds);
  }

  #grantAndUpdate(limits: readonly WorkerSharedLimit[], now: Millis): void {
    for (const limit of limits) {
      limit.advance(now);
      limit.grantTokens(now);
      this.#scheduleWake(limit);
    }
    this.#sendUpdates(limits, now);
  }

  #scheduleWake(limit: WorkerSharedLimit): void {
    this.#wakes.remove(limit);
    if (limit.wakeAt !== Number.POSITIVE_INFINITY) this.#wakes.push(limit);
  }

  #sendUpdates(limits: Iterable<WorkerSharedLimit>, now: Millis): void {
    const updatesByWorker = new Map<WorkerId, LimitUpdate[]>();
    for (const limit of limits) {
      for (const [workerId, update] of limit.pendingUpdates(now)) {
        const workerUpdates = updatesByWorker.get(workerId) ?? [];
        updatesByWorker.set(workerId, workerUpdates);
        workerUpdates.push(update);
      }
    }
    for (const [workerId, workerUpdates] of updatesByWorker) {
      this.#parts.send(workerId, { limits: workerUpdates, holds: [] });
    }
  }

  #find(ref: LimitRef, now: Millis): WorkerSharedLimit | undefined {
    const known = this.#limits.get(limitId(ref));
    if (known === undefined) return this.#make(ref, now);
    this.#families.touch(known);
    return known;
  }

  #make(ref: LimitRef, now?: Millis): WorkerSharedLimit | undefined {
    const { makeMeter, timing, listen } = this.#parts;
    const meter = makeMeter(ref);
    if (meter === undefined) return undefined;
    const limit = new WorkerSharedLimit(ref, meter, timing, listen);
    this.#limits.set(limitId(ref), limit);
    const override = this.#overrides.get(ref.upstream);
    if (override !== undefined && ref.nested === '' && now !== undefined) limit.setOverride(override, now);
    if (now !== undefined) for (const workerId of this.#workers) limit.join(workerId, now);
    const evicted = ref.key === '' ? undefined : this.#families.add(limit);
    if (evicted !== undefined) this.#drop(evicted);
    return limit;
  }

  #drop(limit: WorkerSharedLimit): void {
    this.#limits.delete(limitId(limit.limit.ref));
    this.#families.remove(limit);
    this.#wakes.remove(limit);
  }

  #forward(from: WorkerId, report: UsageReport, now: Millis): void {
    const updates = this.#kept.add(report, now);
    if (updates === undefined) return;
    for (const workerId of this.#workers) if (workerId !== from) this.#parts.send(workerId, updates);
  }
}
