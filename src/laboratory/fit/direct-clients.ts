import type { BackOff, Millis, Random } from '../../core/exchange/attempt-outcome.ts';
import type { Asked } from '../../simulator/upstream/nested-limit-models.ts';
import { seededRandom } from '../../simulator/seeded-random.ts';
import type { UpstreamSpec } from '../../simulator/upstream/upstream-model.ts';
import { Upstream } from '../../simulator/upstream/upstream-model.ts';
import { EventQueue } from '../../simulator/engine/event-queue.ts';
import type { Candidate, FitRow } from './replay-candidate.ts';
import { FitTally } from './replay-candidate.ts';
import type { Logged } from './logged-request.ts';

/** The name of clients that send each request once: what they meet should be what the log has. */
export const NO_RETRIES = 'no retries';

export interface DirectSettings {
  readonly name: string;
  /** Undefined: each request is sent once. */
  readonly backOff: BackOff | undefined;
  /** Sends in all, ≥ 1. */
  readonly attempts: number;
  readonly upstream: UpstreamSpec;
  readonly seed: number;
}

/** A request that waits for its next attempt. */
interface Waiting {
  readonly asked: Asked;
  readonly arrivedAt: Millis;
  readonly failures: number;
  readonly memory: number;
}

/** Clients that ask the upstream themselves, and retry what it refuses or fails as a strategy says. */
export class Direct implements Candidate {
  readonly name: string;
  readonly #backOff: BackOff | undefined;
  readonly #attempts: number;
  readonly #upstream: Upstream;
  readonly #random: Random;
  readonly #queue = new EventQueue<Waiting>();
  readonly #tally = new FitTally();

  constructor({ name, backOff, attempts, upstream, seed }: DirectSettings) {
    this.name = name;
    this.#backOff = backOff;
    this.#attempts = backOff === undefined ? 1 : attempts;
    this.#upstream = new Upstream(upstream);
    this.#random = seededRandom(seed);
  }

  arrive({ method, path }: Logged, at: Millis): void {
    this.#advance(at);
    this.#send({ asked: { method, path }, arrivedAt: at, failures: 0, memory: 0 }, at);
  }

  finish(): void {
    this.#advance(Number.POSITIVE_INFINITY);
  }

  row(): FitRow {
    return this.#tally.row(this.name);
  }

  #advance(to: Millis): void {
    while (this.#queue.size > 0 && this.#queue.nextAt <= to) {
      const now = this.#queue.nextAt;
      const waiting = this.#queue.pop();
      if (waiting !== undefined) this.#send(waiting, now);
    }
  }

  #send({ asked, arrivedAt, failures, memory }: Waiting, now: Millis): void {
    const conduct = this.#upstream.decide(now, this.#random, asked);
    this.#tally.sent(conduct);
    const ends = now + (conduct.kind === 'down' ? 0 : conduct.latency);
    if (conduct.kind === 'serve') return this.#tally.succeeded(ends - arrivedAt);
    const step = failures + 1 < this.#attempts ? this.#backOff?.next(failures, memory, this.#random) : undefined;
    if (step !== undefined) {
      this.#queue.push(ends + step.delay, { asked, arrivedAt, failures: failures + 1, memory: step.memory });
    } else if (conduct.kind === 'throttle') {
      this.#tally.refused();
    } else {
      this.#tally.failed();
    }
  }
}
