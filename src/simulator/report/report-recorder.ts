import type { GateView } from '../../core/events/proxy-events.ts';
import type { Millis, PerSecond } from '../../core/exchange/attempt-outcome.ts';
import type { Demand } from './allowed-demand.ts';
import { allowedDemand } from './allowed-demand.ts';
import { Latencies } from './latency-histogram.ts';
import type { Counts, GroupReport, Quantiles, Report, Sample } from './simulation-report.ts';
import { jainIndex } from './simulation-report.ts';
import type { ClientGroup, Scenario } from '../scenario.ts';
import { Spread } from './running-variance.ts';
import type { Conduct } from '../upstream/upstream-model.ts';
import type { Answered, Observer } from '../engine/simulator.ts';

/** Counts a run: all of it for the series, and what comes after the warm-up for the figures. */
export class Tally implements Observer {
  readonly #scenario: Scenario;
  readonly #now: () => Millis;
  readonly #groups: readonly GroupTally[];
  readonly #demand: (now: Millis) => Demand;
  readonly #all = new Latencies();
  readonly #series: Sample[] = [];
  readonly #rate = new Spread();
  /** Each replica says the same of it. */
  readonly #isOneLimit: boolean;
  readonly #counts = noCounts();
  /** Since the last sample, warm-up and all. */
  #recent = noCounts();
  /** Successes by group, as long ago. */
  readonly #served: number[];
  #allowed = 0;
  #sampledAt: Millis = 0;

  constructor(scenario: Scenario, now: () => Millis) {
    this.#scenario = scenario;
    this.#isOneLimit = scenario.shared || scenario.lease !== undefined || scenario.pool !== undefined;
    this.#now = now;
    this.#demand = allowedDemand(scenario);
    this.#groups = scenario.clients.map((group) => new GroupTally(group));
    this.#served = scenario.clients.map(() => 0);
  }

  onOffer(group: number): void {
    this.#recent.offered += 1;
    if (!this.#isCounted()) return;
    this.#counts.offered += 1;
    const tally = this.#groups[group];
    if (tally !== undefined) tally.offered += 1;
  }

  onConduct(conduct: Conduct): void {
    const isWasted = conduct.kind === 'throttle' || conduct.kind === 'down' || isServerError(conduct);
    this.#recent.sends += 1;
    if (isWasted) this.#recent.wasted += 1;
    if (!this.#isCounted()) return;
    this.#counts.sends += 1;
    if (isWasted) this.#counts.wasted += 1;
  }

  onAnswer({ group, member, verdict, status, took, service }: Answered): void {
    const isSuccess = verdict.kind === 'forward' && status < 400;
    if (isSuccess) this.#served[group] = (this.#served[group] ?? 0) + 1;
    if (!this.#isCounted()) return;
    if (verdict.kind === 'refuse') this.#counts.refused += 1;
    else if (isSuccess) {
      this.#counts.successes += 1;
      this.#all.add(took - service);
      this.#groups[group]?.succeed(member, took - service);
    } else this.#counts.failed += 1;
  }

  /** @param capacity what the upstream lets through now */
  sample(now: Millis, capacity: PerSecond, views: readonly GateView[]): void {
    const seconds = (now - this.#sampledAt) / 1000;
    const { offered, sends, wasted } = this.#recent;
    this.#recent = noCounts();
    this.#sampledAt = now;
    let rate = 0;
    let queued = 0;
    for (const [replica, { limits }] of views.entries()) {
      for (const limit of limits) {
        if (limit.nested === '' && (replica === 0 || !this.#isOneLimit)) rate += limit.rate;
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
    else this.#allowed += demand.allowed < demand.all ? demand.allowed * seconds : offered;
  }

  report(seed: number): Report {
    const { name, duration, warmup } = this.#scenario;
    const counts: Counts = this.#counts;
    const { successes, refused, failed, wasted } = counts;
    const ended = successes + refused + failed;
    return {
      scenario: name,
      seed,
      span: duration - warmup,
      goodput: ratio(successes, this.#allowed),
      waste: wasted === 0 ? 0 : wasted / successes,
      failures: ratio(failed, ended),
      refused: ratio(refused, ended),
      latency: quantiles(this.#all),
      jain: jainIndex(this.#groups.flatMap((group) => [...group.shares()])),
      oscillation: this.#rate.relative,
      counts,
      groups: this.#groups.map((group) => group.report(successes)),
      series: this.#series,
    };
  }

  #isCounted(): boolean {
    return this.#now() >= this.#scenario.warmup;
  }
}

class GroupTally {
  offered = 0;
  readonly #group: ClientGroup;
  readonly #successes: Uint32Array;
  readonly #latencies = new Latencies();

  constructor(group: ClientGroup) {
    this.#group = group;
    this.#successes = new Uint32Array(group.count);
  }

  succeed(member: number, added: Millis): void {
    this.#successes[member] = (this.#successes[member] ?? 0) + 1;
    this.#latencies.add(added);
  }

  *shares(): Iterable<number> {
    for (const successes of this.#successes) yield successes / this.#group.weight;
  }

  report(all: number): GroupReport {
    const successes = this.#latencies.count;
    return {
      name: this.#group.name,
      offered: this.offered,
      successes,
      served: ratio(successes, this.offered),
      share: ratio(successes, all),
      latency: quantiles(this.#latencies),
      jain: jainIndex(this.#successes),
    };
  }
}

function isServerError(conduct: Conduct): boolean {
  return conduct.kind === 'fail' && (conduct.status >= 500 || conduct.status === 429);
}

function noCounts(): { -readonly [K in keyof Counts]: number } {
  return { offered: 0, successes: 0, refused: 0, failed: 0, sends: 0, wasted: 0 };
}

function ratio(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole;
}

function quantiles(latencies: Latencies): Quantiles {
  return { p50: latencies.quantile(0.5), p99: latencies.quantile(0.99) };
}
