/** When processes have decided about writes without the store (`onStoreLost: local`), as their own metrics say. */
import type { Millis } from '../../src/core/scalars.ts';
import { seriesOf } from './end-state.ts';
import type { FaultLog } from './fault-record.ts';
import type { GateProcess } from './gate-process.ts';

const INTERVAL: Millis = 300;
/** A stopped process does not respond. */
const PATIENCE: Millis = 2000;
const DECIDED = /^tidegate_idempotency_keys_total\{.*event="decided_locally"/;

interface Reading {
  /** When it was requested. */
  readonly at: Millis;
  readonly starts: number;
  /** Undefined if the process did not respond. */
  readonly count: number | undefined;
}

/** Reads the metric of each process again and again. What a process counts between two readings happened between them. */
export class LocalDecisions {
  readonly #gates: readonly GateProcess[];
  readonly #faults: FaultLog;
  readonly #last: (Reading | undefined)[] = [];
  #timer: NodeJS.Timeout | undefined;
  #reading: Promise<unknown> = Promise.resolve();

  constructor(gates: readonly GateProcess[], faults: FaultLog) {
    this.#gates = gates;
    this.#faults = faults;
    this.#schedule();
  }

  /** Reads once more. */
  async stop(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#reading;
    clearTimeout(this.#timer);
    await this.#readAll();
  }

  #schedule(): void {
    this.#timer = setTimeout(() => {
      this.#reading = this.#readAll().finally(() => this.#schedule());
    }, INTERVAL);
  }

  async #readAll(): Promise<void> {
    await Promise.all(this.#gates.map((gate, place) => this.#read(gate, place)));
  }

  async #read(gate: GateProcess, place: number): Promise<void> {
    const before = this.#last[place];
    const { starts } = gate;
    const at = performance.now();
    const count = await seriesOf(gate, (line) => DECIDED.test(line), PATIENCE).catch(() => undefined);
    this.#last[place] = { at, starts, count };
    const isSame = before?.count === count && before?.starts === starts && gate.starts === starts;
    // A process that has ended takes with it what it has counted since the last reading.
    if (count === undefined || !(isSame || (before === undefined && count === 0))) {
      this.#faults.localParts.push({ place, from: before?.at ?? 0, to: performance.now() });
    }
  }
}
