import type { Millis, PerSecond } from '../../core/scalars.ts';
import type { QueryResults, UpstreamRates } from './process-api.ts';
import { roundToMilli } from './counter-rates.ts';

/** Rates of an upstream over some seconds. */
export interface RateSample {
  /** The end of the time, in milliseconds since 1970. */
  readonly at: Millis;
  readonly seconds: number;
  /** The rate in force at the end; null if there is no limit. 0 while blocked. */
  readonly rate: PerSecond | null;
  readonly ceiling: PerSecond | null;
  readonly sentPerSecond: PerSecond;
  readonly throttledPerSecond: PerSecond;
  readonly failedPerSecond: PerSecond;
}

/** Samples of about a second that are kept: five minutes. */
const MAX_SECONDS = 300;
/** Samples of a minute that are kept: an hour. */
const MAX_MINUTES = 60;
const MINUTE: Millis = 60_000;

/** The last hour of each upstream: the last five minutes in seconds, the rest in minutes. At most 80 KB for an upstream. */
export class RateHistory {
  #byUpstream = new Map<string, UpstreamHistory>();
  /** By process and upstream: the counters at the last sample. */
  readonly #last = new Map<number, ReadonlyMap<string, UpstreamRates>>();
  #lastAt: Millis | undefined;

  /** Adds the counters of all processes, sampled now. Upstreams that no process has any more are dropped. */
  record(results: QueryResults<'rates'>, at: Millis): void {
    const lastAt = this.#lastAt;
    this.#lastAt = at;
    const totals = new Map<string, { sent: number; throttled: number; failed: number; latest: UpstreamRates }>();
    for (const [process, upstreams] of results) {
      const before = this.#last.get(process);
      for (const each of upstreams) {
        // A process that was not sampled before has started since, unless this is the first sample of all.
        const { sent = 0, throttled = 0, failed = 0 } = before?.get(each.name) ?? (lastAt === undefined ? each : {});
        const total = totals.get(each.name) ?? { sent: 0, throttled: 0, failed: 0, latest: each };
        totals.set(each.name, {
          sent: total.sent + Math.max(0, each.sent - sent),
          throttled: total.throttled + Math.max(0, each.throttled - throttled),
          failed: total.failed + Math.max(0, each.failed - failed),
          latest: total.latest.rate === undefined ? each : total.latest,
        });
      }
      this.#last.set(process, new Map(upstreams.map((each) => [each.name, each])));
    }
    if (lastAt === undefined || at <= lastAt) return;
    const seconds = (at - lastAt) / 1000;
    const kept = new Map<string, UpstreamHistory>();
    for (const [name, { sent, throttled, failed, latest }] of totals) {
      const history = this.#byUpstream.get(name) ?? new UpstreamHistory();
      kept.set(name, history);
      history.add({
        at,
        seconds,
        rate: latest.rate ?? null,
        ceiling: latest.ceiling ?? null,
        sentPerSecond: sent / seconds,
        throttledPerSecond: throttled / seconds,
        failedPerSecond: failed / seconds,
      });
    }
    this.#byUpstream = kept;
  }

  /** To be called when a process has ended. */
  removeProcess(process: number): void {
    this.#last.delete(process);
  }

  /** The samples of each upstream, oldest first. */
  samples(): ReadonlyMap<string, readonly RateSample[]> {
    return new Map([...this.#byUpstream].map(([name, history]) => [name, history.samples()]));
  }
}

class UpstreamHistory {
  readonly #seconds: RateSample[] = [];
  readonly #minutes: RateSample[] = [];
  /** Samples of the current minute. */
  #minute: RateSample[] = [];

  add(sample: RateSample): void {
    this.#seconds.push(sample);
    if (this.#seconds.length > MAX_SECONDS) this.#seconds.shift();
    const [first] = this.#minute;
    if (first !== undefined && Math.floor(first.at / MINUTE) !== Math.floor(sample.at / MINUTE)) {
      this.#minutes.push(average(this.#minute));
      if (this.#minutes.length > MAX_MINUTES) this.#minutes.shift();
      this.#minute = [];
    }
    this.#minute.push(sample);
  }

  samples(): readonly RateSample[] {
    const [first] = this.#seconds;
    const older = this.#minutes.filter(({ at }) => first !== undefined && at < first.at);
    return [...older, ...this.#seconds].map(roundSample);
  }
}

/** One sample for several; the limit is that of the last. */
function average(samples: readonly RateSample[]): RateSample {
  let [seconds, sent, throttled, failed] = [0, 0, 0, 0];
  for (const each of samples) {
    seconds += each.seconds;
    sent += each.sentPerSecond * each.seconds;
    throttled += each.throttledPerSecond * each.seconds;
    failed += each.failedPerSecond * each.seconds;
  }
  const last = samples.at(-1);
  return {
    at: last?.at ?? 0,
    seconds,
    rate: last?.rate ?? null,
    ceiling: last?.ceiling ?? null,
    sentPerSecond: sent / seconds,
    throttledPerSecond: throttled / seconds,
    failedPerSecond: failed / seconds,
  };
}

function roundSample(sample: RateSample): RateSample {
  const { at, seconds, rate, ceiling, sentPerSecond, throttledPerSecond, failedPerSecond } = sample;
  return {
    at,
    seconds: roundToMilli(seconds),
    rate: rate === null ? null : roundToMilli(rate),
    ceiling: ceiling === null ? null : roundToMilli(ceiling),
    sentPerSecond: roundToMilli(sentPerSecond),
    throttledPerSecond: roundToMilli(throttledPerSecond),
    failedPerSecond: roundToMilli(failedPerSecond),
  };
}
