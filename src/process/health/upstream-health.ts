import type { UpstreamRates } from '../../admin/operations/process-api.ts';
import type { EndpointFailure } from '../../core/events/gate-views.ts';
import type { EventSink } from '../../core/events/proxy-events.ts';
import type { Millis } from '../../core/scalars.ts';

/** From this share of failed attempts on, an upstream fails, or if all of the last ones failed; below the second, it has recovered. */
const FAILING_SHARE = 0.5;
const RECOVERED_SHARE = 0.2;
/** The attempts of this time count, and earlier ones until there are enough for a judgement. */
const WINDOW: Millis = 10_000;
const MAX_AGE: Millis = 300_000;
const MIN_ATTEMPTS_FAILING = 5;
const MIN_ATTEMPTS_RECOVERED = 3;

interface Sample {
  readonly at: Millis;
  readonly sent: number;
  readonly failed: number;
}

interface UpstreamRecord {
  /** Counters since the start, by process. */
  readonly counters: Map<number, Pick<UpstreamRates, 'sent' | 'failed'>>;
  /** Those with attempts, newest first. */
  samples: readonly Sample[];
  failure: EndpointFailure | undefined;
  failingSince: Millis | undefined;
}

/** Detects from samples of the counters that the attempts at an upstream mostly fail, and that this is over. */
export class UpstreamHealth {
  readonly #listen: EventSink;
  readonly #upstreams = new Map<string, UpstreamRecord>();

  constructor(listen: EventSink) {
    this.#listen = listen;
  }

  /** To be called each second with the counters of all processes. */
  record(rates: ReadonlyMap<number, readonly UpstreamRates[]>, now: Millis): void {
    const known = new Set<string>();
    const added = new Map<string, { sent: number; failed: number }>();
    for (const [process, upstreams] of rates) {
      for (const { name, sent, failed, failure } of upstreams) {
        known.add(name);
        const record = this.#recordOf(name);
        const sum = added.get(name) ?? { sent: 0, failed: 0 };
        added.set(name, sum);
        const before = record.counters.get(process);
        record.counters.set(process, { sent, failed });
        forgetEnded(record.counters, rates);
        sum.sent += Math.max(0, sent - (before?.sent ?? 0));
        sum.failed += Math.max(0, failed - (before?.failed ?? 0));
        if (failure !== undefined && failure.at >= (record.failure?.at ?? failure.at)) record.failure = failure;
      }
    }
    for (const [name, sum] of added) this.#judge(name, { at: now, ...sum });
    // A reload removed it. Without an answer of any process, nothing is known.
    if (known.size > 0) for (const name of this.#upstreams.keys()) if (!known.has(name)) this.#upstreams.delete(name);
  }

  #recordOf(upstream: string): UpstreamRecord {
    let record = this.#upstreams.get(upstream);
    if (record === undefined) {
      record = { counters: new Map(), samples: [], failure: undefined, failingSince: undefined };
      this.#upstreams.set(upstream, record);
    }
    return record;
  }

  #judge(upstream: string, sample: Sample): void {
    const record = this.#recordOf(upstream);
    if (sample.sent === 0) return; // no traffic is no sign of recovery
    const now = sample.at;
    record.samples = keepRelevant([sample, ...record.samples], now);
    const { failure, failingSince } = record;
    if (failingSince === undefined) {
      const outage = allFailed(record.samples);
      const failedShare = outage === undefined ? shareFailed(record.samples, MIN_ATTEMPTS_FAILING, now) : 1;
      if (failedShare === undefined || failedShare < FAILING_SHARE) return;
      record.failingSince = now;
      if (outage !== undefined) record.samples = outage; // earlier successes are no sign of recovery
      this.#listen({ type: 'upstream-failing', upstream, failedShare, failure });
    } else {
      const failedShare = shareFailed(record.samples, MIN_ATTEMPTS_RECOVERED, now);
      if (failedShare === undefined || failedShare >= RECOVERED_SHARE) return;
      record.failingSince = undefined;
      this.#listen({ type: 'upstream-recovered', upstream, after: now - failingSince, failure });
    }
  }
}

/** Processes that ended, once there are many: one that did not respond in time is still known at the next sample. */
function forgetEnded(counters: Map<number, unknown>, present: ReadonlyMap<number, unknown>): void {
  if (counters.size <= 2 * present.size + 8) return;
  for (const process of counters.keys()) if (!present.has(process)) counters.delete(process);
}

/** The samples of the window, and as many before it as give enough attempts for either judgement. */
function keepRelevant(samples: readonly Sample[], now: Millis): readonly Sample[] {
  let sent = 0;
  return samples.filter((sample) => {
    const isRelevant = now - sample.at < WINDOW || (sent < MIN_ATTEMPTS_FAILING && now - sample.at <= MAX_AGE);
    sent += sample.sent;
    return isRelevant;
  });
}

/** The newest samples without a success, if they have enough attempts for an outage. */
function allFailed(samples: readonly Sample[]): readonly Sample[] | undefined {
  const end = samples.findIndex(({ sent, failed }) => failed < sent);
  const newest = end < 0 ? samples : samples.slice(0, end);
  return newest.reduce((sum, { sent }) => sum + sent, 0) >= MIN_ATTEMPTS_FAILING ? newest : undefined;
}

/** Among the attempts in the window, and in samples before it until there are `min`; undefined if there are fewer. */
function shareFailed(samples: readonly Sample[], min: number, now: Millis): number | undefined {
  let sent = 0;
  let failed = 0;
  for (const sample of samples) {
    if (now - sample.at >= WINDOW && sent >= min) break;
    sent += sample.sent;
    failed += sample.failed;
  }
  return sent < min ? undefined : Math.min(1, failed / sent);
}
