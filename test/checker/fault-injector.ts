import { setTimeout as sleep } from 'node:timers/promises';
import type { Millis, Random } from '../../src/core/scalars.ts';
import { seededRandom } from '../../src/simulator/seeded-random.ts';
import type { FaultLog, FaultRecord } from './fault-record.ts';

/** One kind of fault at one topology. */
export interface Fault {
  readonly name: string;
  /** It takes more than seconds. */
  readonly isLong?: boolean;
  /** Injects it and removes it. Resolves when everything works again. @throws Error if a promise is broken */
  readonly inject: (random: Random) => Promise<void>;
}

/** Injects one fault after another in random order, with pauses between: all kinds before any is repeated. */
export class FaultInjector {
  readonly #faults: readonly Fault[];
  readonly #log: FaultLog;
  readonly #random: Random;
  readonly #pause: Millis;
  readonly #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #injected = 0;
  readonly violations: string[] = [];

  readonly #least: number;

  /** @param pause the longest pause between two faults @param least how many have to be injected */
  constructor(faults: readonly Fault[], log: FaultLog, seed: number, pause: Millis, least = faults.length) {
    this.#faults = faults;
    this.#log = log;
    this.#random = seededRandom(seed);
    this.#pause = pause;
    this.#least = least;
  }

  /** Whether enough have been injected: each kind, unless fewer were asked for. */
  get hasInjectedEnough(): boolean {
    return this.#injected >= this.#least;
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Resolves when the last fault is over. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    for (;;) {
      const order = this.#faults.map((fault) => ({ fault, at: this.#random() })).toSorted((a, b) => a.at - b.at);
      for (const { fault } of order) {
        await sleep(this.#pause * (0.3 + 0.7 * this.#random()), undefined, { signal }).catch(() => undefined);
        if (signal.aborted) return;
        const record = this.#log.begin(fault.name);
        if (!(await this.#inject(fault, record))) return;
      }
    }
  }

  /** @returns false if nothing works any more */
  async #inject(fault: Fault, record: FaultRecord): Promise<boolean> {
    try {
      await fault.inject(this.#random);
      record.to = performance.now();
      this.#injected += 1;
      return true;
    } catch (error) {
      this.violations.push(`${fault.name}: ${error instanceof Error ? error.message : String(error)}`);
      this.#injected = Number.POSITIVE_INFINITY;
      return false;
    }
  }
}
