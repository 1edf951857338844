import type { BackOff, Millis, PerSecond, Random } from '../../core/exchange/attempt-outcome.ts';
import { GrowingCounts } from '../integer-histogram.ts';
import { normal } from '../normal-variate.ts';
import type { Trial } from '../trial.ts';
import { BREATH } from '../trial.ts';
import type { Admission } from '../../simulator/limit-models/limit-model.ts';
import { ACCEPTED } from '../../simulator/limit-models/limit-model.ts';
import { TokenBucket } from '../../simulator/limit-models/token-bucket.ts';
import { Latencies } from '../../simulator/report/latency-histogram.ts';
import { EventQueue } from '../../simulator/engine/event-queue.ts';
import type { HintPolicy } from './hint-policy.ts';

/** One hop of the network takes |N(10, 2)| ms. */
const HOP = { mean: 10, deviation: 2 } as const;
/** In which a peak is looked for. */
const MOMENT: Millis = 100;

export interface Herd {
  /** All have been refused at 0. */
  readonly clients: number;
  /** The limit is a token bucket, empty at 0. */
  readonly rate: PerSecond;
  readonly burst: number;
  readonly hint: HintPolicy;
  /** How long the refuser holds a request that comes back, until it can pass; 0: it has no queue. */
  readonly patience: Millis;
  /** A client waits for its own backoff and for what it was told, whichever is longer; undefined: for what it was told. */
  readonly backOff: BackOff | undefined;
  readonly random: Random;
  /** Whoever has not been served by then is not. */
  readonly most: Millis;
}

/** What it came to. */
export interface Drained {
  /** Until the last of those who were served was. */
  readonly lastServed: Millis;
  /** Most requests within a tenth of a second. */
  readonly peak: number;
  /** Requests that were refused after the first refusal, for each that was served. */
  readonly waste: number;
  /** Until a client was served: half of those who were, and 99 in 100. */
  readonly p50: Millis;
  readonly p99: Millis;
  /** Clients whose backoff gave up. */
  readonly gaveUp: number;
  /** Clients that still tried when the time was over. */
  readonly unserved: number;
  /** Requests by tenths of a second. */
  readonly moments: readonly number[];
}

/** Many who have been refused at once come back, and are refused again until each has been served. */
export function* drainHerd({ clients, rate, burst, hint, patience, backOff, random, most }: Herd): Trial<Drained> {
  const limit = new TokenBucket({ kind: 'token-bucket', rate, burst });
  for (let i = 0; i < burst; i += 1) limit.arrive(0);
  // When the last of the queue passes: one at a time, as fast as the limit.
  let turn = 0;
  const queue = new EventQueue<number>();
  const failures = new Int32Array(clients);
  const memory = new Float64Array(clients);
  const moments = new GrowingCounts();
  const took = new Latencies();
  const hop = (): Millis => Math.abs(normal(HOP.mean, HOP.deviation, random));
  let [served, gaveUp, refusals, lastServed, events] = [0, 0, 0, 0, 0];

  const refuse = (client: number, now: Millis, wait: Millis): void => {
    const told = hint({ now, wait, waiting: clients - served - gaveUp }, random);
    let own = 0;
    if (backOff !== undefined) {
      const step = backOff.next(failures[client] ?? 0, memory[client] ?? 0, random);
      if (step === undefined) {
        gaveUp += 1;
        return;
      }
      own = step.delay;
      memory[client] = step.memory;
    }
    failures[client] = (failures[client] ?? 0) + 1;
    queue.push(now + hop() + Math.max(own, told) + hop(), client);
  };

  const enqueue = (now: Millis): Admission => {
    const next = Math.max(now, turn + 1000 / rate);
    if (next - now > patience) return { accepted: false, retryAfter: next - now };
    turn = next;
    return ACCEPTED;
  };

  for (let client = 0; client < clients; client += 1) refuse(client, 0, 1000 / rate);
  while (queue.size > 0 && queue.nextAt <= most) {
    events += 1;
    if (events % BREATH === 0) yield;
    const now = queue.nextAt;
    const client = queue.pop() ?? 0;
    moments.add(Math.floor(now / MOMENT));
    const admission = patience === 0 ? limit.arrive(now) : enqueue(now);
    if (admission.accepted) {
      const passes = patience === 0 ? now : turn;
      served += 1;
      lastServed = passes;
      took.add(passes);
    } else {
      refusals += 1;
      refuse(client, now, admission.retryAfter);
    }
  }
  return {
    lastServed,
    peak: moments.values.reduce((a, b) => Math.max(a, b), 0),
    waste: served === 0 ? Number.POSITIVE_INFINITY : refusals / served,
    // In buckets, whose middle may lie beyond the last of all.
    p50: Math.min(lastServed, took.quantile(0.5)),
    p99: Math.min(lastServed, took.quantile(0.99)),
    gaveUp,
    unserved: clients - served - gaveUp,
    moments: moments.values,
  };
}
