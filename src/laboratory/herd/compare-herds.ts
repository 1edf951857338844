import { PACED_RETURN_GRACE } from '../../core/limits/longest-wait.ts';
import type { ClientStrategy } from '../contention/compare-contention.ts';
import type { Millis, PerSecond, Random } from '../../core/scalars.ts';
import type { RoundRobinCell } from '../round-robin.ts';
import { RoundRobinExperiment } from '../round-robin.ts';
import { randomStreams } from '../random-streams.ts';
import type { Trial } from '../trial.ts';
import type { HerdResult } from './herd-trial.ts';
import { runHerdTrial } from './herd-trial.ts';
import type { HintPolicyName } from './hint-policy.ts';
import { makeHintPolicy } from './hint-policy.ts';

/** Means over the trials. */
export interface HerdRow extends HerdResult {
  readonly hint: HintPolicyName;
  readonly strategy: string;
  /** Time until all were served, in ms; undefined if not all were in some trial. */
  readonly drain: Millis | undefined;
}

export interface HerdSettings {
  readonly clients: number;
  readonly rate: PerSecond;
  readonly burst: number;
  readonly hints: readonly HintPolicyName[];
  readonly clientStrategies: readonly ClientStrategy[];
  /** ≥ 1. */
  readonly trials: number;
  readonly seed: number;
}

/**
 * The proxy's maximum wait for clients that return at their Retry-After: the default of queue.maxWait and its extension
 * for them.
 */
const MAX_QUEUE_WAIT: Millis = 1000 + PACED_RETURN_GRACE;

/** Every hint policy with every client strategy. */
export function compareHerds({
  hints,
  clientStrategies,
  trials,
  seed,
  ...world
}: HerdSettings): RoundRobinExperiment<HerdRow> {
  const next = randomStreams(seed);
  const cells = hints.flatMap((hint) => clientStrategies.map((client) => new HerdCell(world, hint, client, next())));
  return new RoundRobinExperiment(cells, trials);
}

/** The time in which the limit could serve all, in ms. */
export function minDrainTime({ clients, rate }: Pick<HerdSettings, 'clients' | 'rate'>): Millis {
  return (1000 * clients) / rate;
}

function isDrained({ gaveUp, unserved }: HerdResult): boolean {
  return gaveUp + unserved === 0;
}

/**
 * The length of a trial: a hundred times what the limit needs, and at least five minutes, so that no client's first wait
 * exceeds it.
 */
export function maxDrainTime(world: Pick<HerdSettings, 'clients' | 'rate'>): Millis {
  return Math.max(300_000, 100 * minDrainTime(world));
}

type HerdParameters = Pick<HerdSettings, 'clients' | 'rate' | 'burst'>;

class HerdCell implements RoundRobinCell<HerdRow> {
  readonly #parameters: HerdParameters;
  readonly #hint: HintPolicyName;
  readonly #client: ClientStrategy;
  readonly #random: Random;
  readonly #trials: HerdResult[] = [];
  #trial: Trial<HerdResult> | undefined;

  constructor(parameters: HerdParameters, hint: HintPolicyName, contestant: ClientStrategy, random: Random) {
    this.#parameters = parameters;
    this.#hint = hint;
    this.#client = contestant;
    this.#random = random;
  }

  run(): boolean {
    this.#trial ??= this.#startTrial();
    const step = this.#trial.next();
    if (step.done !== true) return false;
    this.#trial = undefined;
    this.#trials.push(step.value);
    return true;
  }

  #startTrial(): Trial<HerdResult> {
    const hint = makeHintPolicy(this.#hint, this.#parameters.rate);
    const maxTime = maxDrainTime(this.#parameters);
    const maxQueueWait = this.#hint === 'slots-and-queue' ? MAX_QUEUE_WAIT : 0;
    const { backOff } = this.#client;
    return runHerdTrial({
      ...this.#parameters,
      hint,
      maxQueueWait,
      backOff,
      random: this.#random,
      maxTime,
    });
  }

  row(): HerdRow | undefined {
    if (this.#trials.length === 0) return undefined;
    const mean = (of: (trial: HerdResult) => number): number =>
      this.#trials.reduce((sum, trial) => sum + of(trial), 0) / this.#trials.length;
    return {
      hint: this.#hint,
      strategy: this.#client.name,
      drain: this.#trials.every(isDrained) ? mean(({ lastServed }) => lastServed) : undefined,
      lastServed: mean(({ lastServed }) => lastServed),
      peak: mean(({ peak }) => peak),
      waste: mean(({ waste }) => waste),
      p50: mean(({ p50 }) => p50),
      p99: mean(({ p99 }) => p99),
      gaveUp: mean(({ gaveUp }) => gaveUp),
      unserved: mean(({ unserved }) => unserved),
      // The curve of one trial: a mean would hide the shape.
      moments: this.#trials[0]?.moments ?? [],
    };
  }
}
