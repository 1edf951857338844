import { PROMISE } from '../../core/admission/wait-estimate.ts';
import type { Contestant } from '../contention/compare-contention.ts';
import type { Millis, PerSecond, Random } from '../../core/exchange/attempt-outcome.ts';
import type { Cell } from '../round-robin.ts';
import { Rounds } from '../round-robin.ts';
import { streams } from '../random-streams.ts';
import type { Trial } from '../trial.ts';
import type { Drained } from './herd-trial.ts';
import { drainHerd } from './herd-trial.ts';
import type { HintPolicyName } from './hint-policy.ts';
import { makeHintPolicy } from './hint-policy.ts';

/** Means over the trials. */
export interface HerdRow extends Drained {
  readonly hint: HintPolicyName;
  readonly strategy: string;
  /** Until all were served; undefined where in some trial some were not. */
  readonly drain: Millis | undefined;
}

export interface HerdSettings {
  readonly clients: number;
  readonly rate: PerSecond;
  readonly burst: number;
  readonly hints: readonly HintPolicyName[];
  readonly contestants: readonly Contestant[];
  /** ≥ 1. */
  readonly trials: number;
  readonly seed: number;
}

/** Of the proxy's queue, for who comes back when told to: the default of queue.maxWait, and what it adds for them. */
const PATIENCE: Millis = 1000 + PROMISE;

/** Every hint policy with every client strategy. */
export function compareHerds({ hints, contestants, trials, seed, ...world }: HerdSettings): Rounds<HerdRow> {
  const next = streams(seed);
  const cells = hints.flatMap((hint) => contestants.map((contestant) => new HerdCell(world, hint, contestant, next())));
  return new Rounds(cells, trials);
}

/** In which the limit could serve all. */
export function leastDrain({ clients, rate }: Pick<HerdSettings, 'clients' | 'rate'>): Millis {
  return (1000 * clients) / rate;
}

function isDrained({ gaveUp, unserved }: Drained): boolean {
  return gaveUp + unserved === 0;
}

/** How long anybody is waited for: a hundred times what the limit needs, and five minutes at least, that no client is left out for its first wait. */
export function mostDrain(world: Pick<HerdSettings, 'clients' | 'rate'>): Millis {
  return Math.max(300_000, 100 * leastDrain(world));
}

type World = Pick<HerdSettings, 'clients' | 'rate' | 'burst'>;

class HerdCell implements Cell<HerdRow> {
  readonly #world: World;
  readonly #hint: HintPolicyName;
  readonly #contestant: Contestant;
  readonly #random: Random;
  readonly #trials: Drained[] = [];
  #trial: Trial<Drained> | undefined;

  constructor(world: World, hint: HintPolicyName, contestant: Contestant, random: Random) {
    this.#world = world;
    this.#hint = hint;
    this.#contestant = contestant;
    this.#random = random;
  }

  run(): boolean {
    this.#trial ??= this.#begin();
    const step = this.#trial.next();
    if (step.done !== true) return false;
    this.#trial = undefined;
    this.#trials.push(step.value);
    return true;
  }

  #begin(): Trial<Drained> {
    const hint = makeHintPolicy(this.#hint, this.#world.rate);
    const most = mostDrain(this.#world);
    const patience = this.#hint === 'slots-and-queue' ? PATIENCE : 0;
    const { backOff } = this.#contestant;
    return drainHerd({ ...this.#world, hint, patience, backOff, random: this.#random, most });
  }

  row(): HerdRow | undefined {
    if (this.#trials.length === 0) return undefined;
    const mean = (of: (trial: Drained) => number): number =>
      this.#trials.reduce((sum, trial) => sum + of(trial), 0) / this.#trials.length;
    return {
      hint: this.#hint,
      strategy: this.#contestant.name,
      drain: this.#trials.every(isDrained) ? mean(({ lastServed }) => lastServed) : undefined,
      lastServed: mean(({ lastServed }) => lastServed),
      peak: mean(({ peak }) => peak),
      waste: mean(({ waste }) => waste),
      p50: mean(({ p50 }) => p50),
      p99: mean(({ p99 }) => p99),
      gaveUp: mean(({ gaveUp }) => gaveUp),
      unserved: mean(({ unserved }) => unserved),
      // Of one trial: a mean of curves shows none of them.
      moments: this.#trials[0]?.moments ?? [],
    };
  }
}
