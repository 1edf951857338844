import type { BackOff } from '../../core/backoff/back-off.ts';
import type { Millis, Random } from '../../core/scalars.ts';
import { EventQueue } from '../../simulator/engine/event-queue.ts';
import { drawNormal } from '../normal-variate.ts';
import type { Trial } from '../trial.ts';
import { EVENTS_PER_YIELD } from '../trial.ts';

/** One hop of the network takes |N(10, 2)| ms. */
const HOP_LATENCY = { mean: 10, deviation: 2 } as const;

export interface ContentionTrialSettings {
  /** Clients of one row; all start at 0. */
  readonly clients: number;
  /** The backoff after a failed write; undefined: none. */
  readonly backOff: BackOff | undefined;
  readonly random: Random;
}

/** The result of a trial. */
export interface ContentionResult {
  /** Writes that reached the server. */
  readonly calls: number;
  /** Time until the last client has its success or has given up, in ms. */
  readonly millis: Millis;
  /** Clients whose backoff has given up. */
  readonly gaveUp: number;
}

/** The next arrival of a client's message. Each client has one message in transit at any time. */
const READ = 0;
const READ_ANSWER = 1;
const WRITE = 2;
const REFUSAL = 3;
const WRITE_ANSWER = 4;

/**
 * Clients write to one row with optimistic concurrency: each reads the row's version, and its write succeeds when nobody has
 * written since. A client whose write failed waits and starts again. As in the simulator published with "Exponential Backoff And Jitter"
 * (Brooker, AWS Architecture Blog, 2015).
 */
export function* runContentionTrial({ clients, backOff, random }: ContentionTrialSettings): Trial<ContentionResult> {
  const queue = new EventQueue<number>();
  const hop = (): Millis => Math.abs(drawNormal(HOP_LATENCY.mean, HOP_LATENCY.deviation, random));
  const next = new Uint8Array(clients);
  const seen = new Float64Array(clients);
  const failures = new Int32Array(clients);
  const memory = new Float64Array(clients);
  let [version, calls, gaveUp, now, events] = [0, 0, 0, 0, 0];

  for (let client = 0; client < clients; client += 1) queue.push(hop(), client);
  while (queue.size > 0) {
    events += 1;
    if (events % EVENTS_PER_YIELD === 0) yield;
    now = queue.nextAt;
    const client = queue.pop() ?? 0;
    let wait = 0;
    switch (next[client]) {
      case READ:
        seen[client] = version;
        next[client] = READ_ANSWER;
        break;
      case READ_ANSWER:
        next[client] = WRITE;
        break;
      case WRITE: {
        calls += 1;
        const succeeds = seen[client] === version;
        if (succeeds) version += 1;
        next[client] = succeeds ? WRITE_ANSWER : REFUSAL;
        break;
      }
      default: // WRITE_ANSWER: the client is done
        continue;
      case REFUSAL: {
        const step = backOff?.next(failures[client] ?? 0, memory[client] ?? 0, random);
        if (backOff !== undefined && step === undefined) {
          gaveUp += 1;
          continue;
        }
        wait = step?.delay ?? 0;
        memory[client] = step?.memory ?? 0;
        failures[client] = (failures[client] ?? 0) + 1;
        next[client] = READ;
        break;
      }
    }
    queue.push(now + wait + hop(), client);
  }
  return { calls, millis: now, gaveUp };
}
