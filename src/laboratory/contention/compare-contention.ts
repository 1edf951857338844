import type { BackOff, Millis, Random } from '../../core/exchange/attempt-outcome.ts';
import type { Cell } from '../round-robin.ts';
import { Rounds } from '../round-robin.ts';
import { streams } from '../random-streams.ts';
import type { Trial } from '../trial.ts';
import type { Contended } from './contention-trial.ts';
import { contend } from './contention-trial.ts';

/** Who takes part. */
export interface Contestant {
  readonly name: string;
  /** Undefined: it tries again at once. */
  readonly backOff: BackOff | undefined;
}

/** Means over the trials. */
export interface ContentionRow {
  readonly n: number;
  readonly strategy: string;
  /** Writes that reached the server, all clients together. */
  readonly calls: number;
  /** Until the last client was done. */
  readonly millis: Millis;
  /** Clients that gave up; absent where none did. */
  readonly gaveUp?: number;
}

export interface ContentionSettings {
  /** Numbers of clients, each ≥ 1. */
  readonly sizes: readonly number[];
  readonly contestants: readonly Contestant[];
  /** ≥ 1. */
  readonly trials: number;
  readonly seed: number;
}

export function compareContenders({ sizes, contestants, trials, seed }: ContentionSettings): Rounds<ContentionRow> {
  const next = streams(seed);
  const cells = sizes.flatMap((n) => contestants.map((contestant) => new ContentionCell(n, contestant, next())));
  return new Rounds(cells, trials);
}

class ContentionCell implements Cell<ContentionRow> {
  readonly #n: number;
  readonly #contestant: Contestant;
  readonly #random: Random;
  #trial: Trial<Contended> | undefined;
  #trials = 0;
  #calls = 0;
  #millis = 0;
  #gaveUp = 0;

  constructor(n: number, contestant: Contestant, random: Random) {
    this.#n = n;
    this.#contestant = contestant;
    this.#random = random;
  }

  run(): boolean {
    const { backOff } = this.#contestant;
    this.#trial ??= contend({ clients: this.#n, backOff, random: this.#random });
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
      strategy: this.#contestant.name,
      calls: this.#calls / trials,
      millis: this.#millis / trials,
      ...(this.#gaveUp === 0 ? {} : { gaveUp: this.#gaveUp / trials }),
    };
  }
}
