import type { BackOff } from '../../core/backoff/back-off.ts';
import type { Millis, Random } from '../../core/scalars.ts';
import type { MethodAndPath } from '../../simulator/upstream/request-match.ts';
import { seededRandom } from '../../simulator/seeded-random.ts';
import type { UpstreamSpec } from '../../simulator/upstream/upstream-model.ts';
import { UpstreamModel } from '../../simulator/upstream/upstream-model.ts';
import { EventQueue } from '../../simulator/engine/event-queue.ts';
import type { ReplayCandidate, FitRow } from './replay-candidate.ts';
import { FitCounters } from './replay-candidate.ts';
import type { LoggedRequest } from './logged-request.ts';

/** The name of clients that send each request once; their result should match the log. */
export const NO_RETRIES = 'no retries';

export interface DirectClientsSettings {
  readonly name: string;
  /** Undefined: each request is sent once. */
  readonly backOff: BackOff | undefined;
  /** Attempts including the first, ≥ 1. */
  readonly attempts: number;
  readonly upstream: UpstreamSpec;
  readonly seed: number;
}

/** A request that waits for its next attempt. */
interface PendingRetry {
  readonly target: MethodAndPath;
  readonly arrivedAt: Millis;
  readonly failures: number;
  readonly memory: number;
}

/** Clients without a proxy: they retry refusals and failures by a strategy. */
export class DirectClients implements ReplayCandidate {
  readonly name: string;
  readonly #backOff: BackOff | undefined;
  readonly #attempts: number;
  readonly #upstream: UpstreamModel;
  readonly #random: Random;
  readonly #queue = new EventQueue<PendingRetry>();
  /** Ends of accepted attempts, if the upstream limits how many are in flight. */
  readonly #ends = new EventQueue<null>();
  readonly #limitsInFlight: boolean;
  readonly #counters = new FitCounters();

  constructor({ name, backOff, attempts, upstream, seed }: DirectClientsSettings) {
    this.name = name;
    this.#backOff = backOff;
    this.#attempts = backOff === undefined ? 1 : attempts;
    this.#upstream = new UpstreamModel(upstream);
    this.#limitsInFlight = upstream.limit.kind === 'concurrency';
    this.#random = seededRandom(seed);
  }

  arrive({ method, path }: LoggedRequest, at: Millis): void {
    this.#advance(at);
    this.#send({ target: { method, path }, arrivedAt: at, failures: 0, memory: 0 }, at);
  }

  finish(): void {
    this.#advance(Number.POSITIVE_INFINITY);
  }

  row(): FitRow {
    return this.#counters.row(this.name);
  }

  #advance(to: Millis): void {
    while (this.#queue.size > 0 && this.#queue.nextAt <= to) {
      const now = this.#queue.nextAt;
      const waiting = this.#queue.pop();
      if (waiting !== undefined) this.#send(waiting, now);
    }
  }

  #releaseUntil(now: Millis): void {
    while (this.#ends.nextAt <= now) {
      const at = this.#ends.nextAt;
      this.#ends.pop();
      this.#upstream.release(at);
    }
  }

  #send({ target, arrivedAt, failures, memory }: PendingRetry, now: Millis): void {
    this.#releaseUntil(now);
    const decision = this.#upstream.decide(now, this.#random, target);
    this.#counters.recordSend(decision);
    const ends = now + (decision.kind === 'down' ? 0 : decision.latency);
    if (this.#limitsInFlight && (decision.kind === 'serve' || decision.kind === 'fail')) this.#ends.push(ends, null);
    if (decision.kind === 'serve') return this.#counters.recordSuccess(ends - arrivedAt);
    const step = failures + 1 < this.#attempts ? this.#backOff?.next(failures, memory, this.#random) : undefined;
    if (step !== undefined) {
      this.#queue.push(ends + step.delay, { target, arrivedAt, failures: failures + 1, memory: step.memory });
    } else if (decision.kind === 'throttle') {
      this.#counters.recordRefusal();
    } else {
      this.#counters.recordFailure();
    }
  }
}
