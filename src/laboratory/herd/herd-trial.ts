import type { BackOff } from '../../core/backoff/back-off.ts';
import type { Millis, PerSecond, Random } from '../../core/scalars.ts';
import { IntegerHistogram } from '../integer-histogram.ts';
import { drawNormal } from '../normal-variate.ts';
import type { Trial } from '../trial.ts';
import { EVENTS_PER_YIELD } from '../trial.ts';
import type { LimitDecision } from '../../simulator/limit-models/limit-model.ts';
import { ACCEPTED } from '../../simulator/limit-models/limit-model.ts';
import { TokenBucket } from '../../simulator/limit-models/token-bucket.ts';
import { LatencyHistogram } from '../../simulator/report/latency-histogram.ts';
import { EventQueue } from '../../simulator/engine/event-queue.ts';
import type { HintPolicy } from './hint-policy.ts';

/** One hop of the network takes |N(10, 2)| ms. */
const HOP_LATENCY = { mean: 10, deviation: 2 } as const;
/** The interval over which a peak is measured, in ms. */
const PEAK_WINDOW: Millis = 100;

export interface HerdTrialSettings {
  /** Number of clients; all are refused at 0. */
  readonly clients: number;
  /** The limit is a token bucket, empty at 0. */
  readonly rate: PerSecond;
  readonly burst: number;
  readonly hint: HintPolicy;
  /** How long a returning request may queue, in ms; 0: no queue. */
  readonly maxQueueWait: Millis;
  /** A client waits for its own backoff or the hint, whichever is longer; undefined: for the hint alone. */
  readonly backOff: BackOff | undefined;
  readonly random: Random;
  /** The end of the trial, in ms: clients not served by then count as unserved. */
  readonly maxTime: Millis;
}

/** The result of a trial. */
export interface HerdResult {
  /** Time until the last served client was served, in ms. */
  readonly lastServed: Millis;
  /** Maximum of requests within a tenth of a second. */
  readonly peak: number;
  /** Refusals after the first, per served client. */
  readonly waste: number;
  /** Time until a client was served, in ms: p50 and p99 of served clients. */
  readonly p50: Millis;
  readonly p99: Millis;
  /** Clients whose backoff gave up. */
  readonly gaveUp: number;
  /** Clients still retrying at the end. */
  readonly unserved: number;
  /** Requests by tenths of a second. */
  readonly moments: readonly number[];
}

/** A thundering herd: many clients refused at once return, and are refused again until each is served. */
export function* runHerdTrial({
  clients,
  rate,
  burst,
  hint,
  maxQueueWait,
  backOff,
  random,
  maxTime,
}: HerdTrialSettings): Trial<HerdResult> {
  const limit = new TokenBucket({ kind: 'token-bucket', rate, burst });
  for (let i = 0; i < burst; i += 1) limit.tryAcquire(0);
  // When the last queued request passes: one at a time, at the rate of the limit.
  let lastSlot = 0;
  const queue = new EventQueue<number>();
  const failures = new Int32Array(clients);
  const memory = new Float64Array(clients);
  const moments = new IntegerHistogram();
  const took = new LatencyHistogram();
  const hop = (): Millis => Math.abs(drawNormal(HOP_LATENCY.mean, HOP_LATENCY.deviation, random));
  let [served, gaveUp, refusals, lastServed, events] = [0, 0, 0, 0, 0];

  const refuse = (client: number, now: Millis, wait: Millis): void => {
    const hintedDelay = hint({ now, wait, waiting: clients - served - gaveUp }, random);
    let backOffDelay = 0;
    if (backOff !== undefined) {
      const step = backOff.next(failures[client] ?? 0, memory[client] ?? 0, random);
      if (step === undefined) {
        gaveUp += 1;
        return;
      }
      backOffDelay = step.delay;
      memory[client] = step.memory;
    }
    failures[client] = (failures[client] ?? 0) + 1;
    queue.push(now + hop() + Math.max(backOffDelay, hintedDelay) + hop(), client);
  };

  const enqueue = (now: Millis): LimitDecision => {
    const next = Math.max(now, lastSlot + 1000 / rate);
    if (next - now > maxQueueWait) return { accepted: false, retryAfterMs: next - now };
    lastSlot = next;
    return ACCEPTED;
  };

  for (let client = 0; client < clients; client += 1) refuse(client, 0, 1000 / rate);
  while (queue.size > 0 && queue.nextAt <= maxTime) {
    events += 1;
    if (events % EVENTS_PER_YIELD === 0) yield;
    const now = queue.nextAt;
    const client = queue.pop() ?? 0;
    moments.add(Math.floor(now / PEAK_WINDOW));
    const admission = maxQueueWait === 0 ? limit.tryAcquire(now) : enqueue(now);
    if (admission.accepted) {
      const passes = maxQueueWait === 0 ? now : lastSlot;
      served += 1;
      lastServed = passes;
      took.add(passes);
    } else {
      refusals += 1;
      refuse(client, now, admission.retryAfterMs);
    }
  }
  return {
    lastServed,
    peak: moments.values.reduce((a, b) => Math.max(a, b), 0),
    waste: served === 0 ? Number.POSITIVE_INFINITY : refusals / served,
    // A histogram's bucket may end after the last value.
    p50: Math.min(lastServed, took.quantile(0.5)),
    p99: Math.min(lastServed, took.quantile(0.99)),
    gaveUp,
    unserved: clients - served - gaveUp,
    moments: moments.values,
  };
}
