import type { Random } from '../../core/scalars.ts';
import type { RoundRobinCell } from '../round-robin.ts';
import { RoundRobinExperiment } from '../round-robin.ts';
import { randomStreams } from '../random-streams.ts';

/**
 * S = G·e^(−2G): a packet is alone when none begins one packet's time before it or after. Abramson (1970). At most
 * 1/(2e), at G = ½.
 */
export function pureThroughput(attempts: number): number {
  return attempts * Math.exp(-2 * attempts);
}

/** S = G·e^(−G): packets that collide overlap completely. Roberts (1972). At most 1/e, at G = 1. */
export function slottedThroughput(attempts: number): number {
  return attempts * Math.exp(-attempts);
}

/** The throughput at one offered load. */
export interface ThroughputRow {
  /** G: mean number of packets sent per packet time, retransmissions included. */
  readonly attempts: number;
  readonly pure: number;
  readonly slotted: number;
  /** As simulated. */
  readonly pureSimulated: number;
  readonly slottedSimulated: number;
}

export interface ThroughputSettings {
  /** G of each row, above 0. */
  readonly attempts: readonly number[];
  /** Simulated packet times of each row, ≥ 1. */
  readonly slots: number;
  readonly seed: number;
}

/** Packet times to a step. */
const PACKET_TIMES_PER_STEP = 20_000;

/** Packets of infinitely many senders at random times, on a channel that carries one at a time. */
export function simulateThroughput({ attempts, slots, seed }: ThroughputSettings): RoundRobinExperiment<ThroughputRow> {
  const next = randomStreams(seed);
  const rounds = Math.ceil(slots / PACKET_TIMES_PER_STEP);
  const stride = Math.ceil(slots / rounds);
  return new RoundRobinExperiment(
    attempts.map((each) => new ThroughputCell(each, stride, next())),
    rounds,
  );
}

class ThroughputCell implements RoundRobinCell<ThroughputRow> {
  readonly #attempts: number;
  readonly #stride: number;
  readonly #random: Random;
  #slots = 0;
  #pure = 0;
  #slotted = 0;
  /** Since the packet before began. */
  #gap = Number.POSITIVE_INFINITY;

  constructor(attempts: number, stride: number, random: Random) {
    this.#attempts = attempts;
    this.#stride = stride;
    this.#random = random;
  }

  run(): boolean {
    this.#runSlotted();
    this.#runPure();
    this.#slots += this.#stride;
    return true;
  }

  row(): ThroughputRow | undefined {
    if (this.#slots === 0) return undefined;
    const attempts = this.#attempts;
    return {
      attempts,
      pure: pureThroughput(attempts),
      slotted: slottedThroughput(attempts),
      pureSimulated: this.#pure / this.#slots,
      slottedSimulated: this.#slotted / this.#slots,
    };
  }

  /** The packets of a slot are a Poisson variate; the slot succeeds if it is one. */
  #runSlotted(): void {
    const none = Math.exp(-this.#attempts);
    const one = none + slottedThroughput(this.#attempts);
    for (let i = 0; i < this.#stride; i += 1) {
      const u = this.#random();
      if (u >= none && u < one) this.#slotted += 1;
    }
  }

  /** Exponential gaps between packets; a packet succeeds if the gaps before and after exceed a packet time. */
  #runPure(): void {
    let left = this.#stride;
    for (;;) {
      const gap = -Math.log(1 - this.#random()) / this.#attempts;
      left -= gap;
      if (left < 0) return;
      if (this.#gap > 1 && gap > 1) this.#pure += 1;
      this.#gap = gap;
    }
  }
}
