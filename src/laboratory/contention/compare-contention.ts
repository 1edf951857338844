import type { BackOff } from '../../core/backoff/back-off.ts';
import type { Millis, Random } from '../../core/scalars.ts';
import type { RoundRobinCell } from '../round-robin.ts';
import { RoundRobinExperiment } from '../round-robin.ts';
import { randomStreams } from '../random-streams.ts';
import type { Trial } from '../trial.ts';
import type { ContentionResult } from './contention-trial.ts';
import { runContentionTrial } from './contention-trial.ts';

/** A competing strategy. */
export interface ClientStrategy {
  readonly name: string;
  /** Undefined: a client retries at once. */
  readonly backOff: BackOff | undefined;
}

/** Means over the trials. */
export interface ContentionRow {
  readonly n: number;
  readonly strategy: string;
  /** Writes that reached the server, from all clients. */
  readonly calls: number;
  /** Time until the last client was done, in ms. */
  readonly millis: Millis;
  /** Clients that gave up; absent if none did. */
  readonly gaveUp?: number;
}

export interface ContentionSettings {
  /** Numbers of clients, each ≥ 1. */
  readonly sizes: readonly number[];
  readonly clientStrategies: readonly ClientStrategy[];
  /** ≥ 1. */
  readonly trials: number;
  readonly seed: number;
}

export function compareContention({
  sizes,
  clientStrategies,
  trials,
  seed,
}: ContentionSettings): RoundRobinExperiment<ContentionRow> {
  const next = randomStreams(seed);
  const cells = sizes.flatMap((n) => clientStrategies.map((client) => new ContentionCell(n, client, next())));
  return new RoundRobinExperiment(cells, trials);
}

class ContentionCell implements RoundRobinCell<ContentionRow> {
  readonly #n: number;
  readonly #client: ClientStrategy;
  readonly #random: Random;
  #trial: Trial<ContentionResult> | undefined;
  #trials = 0;
  #calls = 0;
  #millis = 0;
  #gaveUp = 0;

  constructor(n: number, contestant: ClientStrategy, random: Random) {
    this.#n = n;
    this.#client = contestant;
    this.#random = random;
  }

  run(): boolean {
    const { backOff } = this.#client;
    this.#trial ??= runContentionTrial({ clients: this.#n, backOff, random: this.#random });
    const step = this.#trial.next();
    if (step.done !== true) return false;
    this.#trial = undefined;
    const { calls, millis, gaveUp } = step.value;
    this.#trials += 1;
    this.#calls += calls;
    this.#millis += millis;
    this.#gaveUp += gaveUp;
    return true;
  }

  row(): ContentionRow | undefined {
    const trials = this.#trials;
    if (trials === 0) return undefined;
    return {
      n: this.#n,
      strategy: this.#client.name,
      calls: this.#calls / trials,
      millis: this.#millis / trials,
      ...(this.#gaveUp === 0 ? {} : { gaveUp: this.#gaveUp / trials }),
    };
  }
}
