import type { GateView } from '../../core/events/gate-views.ts';
import type { Millis, PerSecond } from '../../core/scalars.ts';
import type { ClientDemand } from './allowed-demand.ts';
import { allowedDemand } from './allowed-demand.ts';
import { LatencyHistogram } from './latency-histogram.ts';
import type {
  ReportCounts,
  GroupReport,
  LatencyQuantiles,
  SimulationReport,
  ReportSample,
} from './simulation-report.ts';
import { jainIndex } from './simulation-report.ts';
import type { ClientGroup, Scenario } from '../scenario.ts';
import { RunningVariance } from './running-variance.ts';
import type { UpstreamDecision } from '../upstream/upstream-model.ts';
import type { SimulatedRequestResult, SimulationObserver } from '../engine/simulator.ts';

/** Records a run: all of it for the series, and the time after the warm-up for the figures. */
export class ReportRecorder implements SimulationObserver {
  readonly #scenario: Scenario;
  readonly #now: () => Millis;
  readonly #groups: readonly GroupRecorder[];
  readonly #demand: (now: Millis) => ClientDemand;
  readonly #latencies = new LatencyHistogram();
  readonly #upstreamWaits = new LatencyHistogram();
  readonly #series: ReportSample[] = [];
  readonly #rate = new RunningVariance();
  /** Every replica reports the same. */
  readonly #isSharedLimit: boolean;
  readonly #counts = zeroCounts();
  /** Since the last sample, warm-up included. */
  #sinceSample = zeroCounts();
  /** Successes by group since the last sample. */
  readonly #served: number[];
  /** In units: those that succeeded, those allowed, and those offered since the last sample. */
  #succeededUnits = 0;
  #allowed = 0;
  #offeredUnits = 0;
  #sampledAt: Millis = 0;

  constructor(scenario: Scenario, now: () => Millis) {
    this.#scenario = scenario;
    this.#isSharedLimit = scenario.shared || scenario.leaseLatency !== undefined || scenario.poolLatency !== undefined;
    this.#now = now;
    this.#demand = allowedDemand(scenario);
    this.#groups = scenario.clients.map((group) => new GroupRecorder(group));
    this.#served = scenario.clients.map(() => 0);
  }

  onOffer(group: number, _sent: boolean, cost: number): void {
    this.#offeredUnits += cost;
    this.#sinceSample.offered += 1;
    if (!this.#isAfterWarmup()) return;
    this.#counts.offered += 1;
    const groupRecorder = this.#groups[group];
    if (groupRecorder !== undefined) groupRecorder.offered += 1;
  }

  onUpstreamDecision(decision: UpstreamDecision): void {
    const isWasted = decision.kind === 'throttle' || decision.kind === 'down' || isServerError(decision);
    this.#sinceSample.sends += 1;
    if (isWasted) this.#sinceSample.wasted += 1;
    if (!this.#isAfterWarmup()) return;
    this.#counts.sends += 1;
    if (isWasted) this.#counts.wasted += 1;
  }

  onAbandoned(): void {
    if (this.#isAfterWarmup()) this.#counts.abandoned += 1;
  }

  onRequestEnd({ group, member, verdict, status, took, cost, service, upstreamWait }: SimulatedRequestResult): void {
    const isSuccess = verdict.kind === 'forward' && status < 400;
    if (isSuccess) this.#served[group] = (this.#served[group] ?? 0) + 1;
    if (!this.#isAfterWarmup()) return;
    if (verdict.kind === 'refuse') {
      this.#counts.refused += 1;
      this.#groups[group]?.recordRefusal(member, verdict.why === 'client_quota_exceeded');
    } else if (isSuccess) {
      this.#counts.successes += 1;
      this.#succeededUnits += cost;
      this.#latencies.add(took - service);
      this.#upstreamWaits.add(upstreamWait);
      this.#groups[group]?.recordSuccess(member, took - service, cost);
    } else this.#counts.failed += 1;
  }

  /** @param capacity requests a second that the upstream accepts now */
  sample(now: Millis, capacity: PerSecond, views: readonly GateView[]): void {
    const seconds = (now - this.#sampledAt) / 1000;
    const { offered, sends, wasted } = this.#sinceSample;
    const offeredUnits = this.#offeredUnits;
    this.#offeredUnits = 0;
    this.#sinceSample = zeroCounts();
    this.#sampledAt = now;
    let rate = 0;
    let queued = 0;
    for (const [replica, { limits }] of views.entries()) {
      for (const limit of limits) {
        if (limit.nested === '' && (replica === 0 || !this.#isSharedLimit)) rate += limit.rate;
        queued += limit.queued;
      }
    }
    this.#series.push({
      at: now,
      limit: capacity,
      rate,
      state: views[0]?.limits[0]?.state ?? 'open',
      offered: offered / seconds,
      sent: sends / seconds,
      accepted: (sends - wasted) / seconds,
      wasted: wasted / seconds,
      queued,
      served: this.#served.map((successes) => successes / seconds),
    });
    this.#served.fill(0);
    if (now <= this.#scenario.warmup) return;
    if (Number.isFinite(rate)) this.#rate.add(rate);
    const demand = this.#demand(now);
    if (demand.allowed > capacity) this.#allowed += capacity * seconds;
    else this.#allowed += demand.allowed < demand.all ? demand.allowed * seconds : offeredUnits;
  }

  report(seed: number): SimulationReport {
    const { name, duration, warmup } = this.#scenario;
    const counts: ReportCounts = this.#counts;
    const { successes, refused, failed, wasted } = counts;
    const ended = successes + refused + failed;
    return {
      scenario: name,
      seed,
      span: duration - warmup,
      goodput: ratio(this.#succeededUnits, this.#allowed),
      waste: wasted === 0 ? 0 : wasted / successes,
      failures: ratio(failed, ended),
      refused: ratio(refused, ended),
      latency: latencyQuantiles(this.#latencies),
      upstreamWait: latencyQuantiles(this.#upstreamWaits),
      jain: jainIndex(this.#groups.flatMap((group) => [...group.shares()])),
      oscillation: this.#rate.coefficientOfVariation,
      counts,
      groups: this.#groups.map((group) => group.report(successes)),
      series: this.#series,
    };
  }

  #isAfterWarmup(): boolean {
    return this.#now() >= this.#scenario.warmup;
  }
}

class GroupRecorder {
  offered = 0;
  readonly #group: ClientGroup;
  /** Units of successful requests, by member. */
  readonly #units: Float64Array;
  readonly #refusals: Uint32Array;
  #refusedByQuota = 0;
  readonly #latencies = new LatencyHistogram();

  constructor(group: ClientGroup) {
    this.#group = group;
    this.#units = new Float64Array(group.count);
    this.#refusals = new Uint32Array(group.count);
  }

  recordSuccess(member: number, added: Millis, cost: number): void {
    this.#units[member] = (this.#units[member] ?? 0) + cost;
    this.#latencies.add(added);
  }

  recordRefusal(member: number, isByQuota: boolean): void {
    this.#refusals[member] = (this.#refusals[member] ?? 0) + 1;
    if (isByQuota) this.#refusedByQuota += 1;
  }

  *shares(): Iterable<number> {
    for (const units of this.#units) yield units / this.#group.weight;
  }

  report(all: number): GroupReport {
    const successes = this.#latencies.count;
    return {
      name: this.#group.name,
      offered: this.offered,
      successes,
      refused: this.#refusals.reduce((sum, count) => sum + count, 0),
      refusedByQuota: this.#refusedByQuota,
      mostRefused: this.#refusals.reduce((most, count) => Math.max(most, count), 0),
      served: ratio(successes, this.offered),
      share: ratio(successes, all),
      latency: latencyQuantiles(this.#latencies),
      jain: jainIndex(this.#units),
    };
  }
}

function isServerError(decision: UpstreamDecision): boolean {
  return decision.kind === 'fail' && (decision.status >= 500 || decision.status === 429);
}

function zeroCounts(): { -readonly [K in keyof ReportCounts]: number } {
  return { offered: 0, successes: 0, refused: 0, failed: 0, sends: 0, wasted: 0, abandoned: 0 };
}

function ratio(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole;
}

function latencyQuantiles(latencies: LatencyHistogram): LatencyQuantiles {
  return { p50: latencies.quantile(0.5), p99: latencies.quantile(0.99) };
}
