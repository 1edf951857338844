import type { Millis, Random } from '../../core/scalars.ts';
import type { RequestFacts } from '../../core/exchange/request-facts.ts';
import type { MethodAndPath } from '../upstream/request-match.ts';
import type { ClientGroup } from '../scenario.ts';
import { rateAt } from '../scenario.ts';
import { seededRandom } from '../seeded-random.ts';
import type { ScheduledEvent, Simulator } from './simulator.ts';

/** A request on its way to a proxy. */
export interface ArrivingRequest {
  readonly facts: RequestFacts;
  readonly target: MethodAndPath;
  readonly group: number;
  readonly member: number;
  readonly client: string;
  readonly weight: number;
  readonly clients: SimulatedClients;
  /** The client disconnects after this time without a response; Infinity: it waits. */
  readonly patience: Millis;
}

/** The clients of a group, as far as they honour Retry-After. */
export interface SimulatedClients {
  /** Whether `onRetryAfter` has an effect. */
  readonly honoursRetryAfter: boolean;
  /** A member received a Retry-After that ends at `at`. */
  onRetryAfter(member: number, at: Millis): void;
}

/** The clients of a group, as one Poisson process: a million clients are a few typed arrays instead of a million timers. */
export class ArrivalProcess implements ScheduledEvent, SimulatedClients {
  readonly isProxyEvent = false;
  readonly honoursRetryAfter: boolean;
  readonly #simulator: Simulator;
  readonly #index: number;
  readonly #group: ClientGroup;
  readonly #facts: RequestFacts;
  readonly #target: MethodAndPath;
  readonly #random: Random;
  /** Until when each member honours a Retry-After. */
  readonly #notBefore: Float64Array;
  /** Made once for each member: a new string would be hashed again at each lookup. */
  readonly #names: (string | undefined)[];

  constructor(simulator: Simulator, index: number, group: ClientGroup) {
    this.#simulator = simulator;
    this.#index = index;
    this.#group = group;
    this.honoursRetryAfter = group.honoursRetryAfter;
    this.#facts = { method: group.method, keyed: group.keyed, expectsContinue: false, priorAttempts: 0 };
    this.#target = { method: group.method, path: group.path };
    this.#random = seededRandom(1 + index + Math.floor(simulator.random() * 2 ** 31));
    this.#names = Array.from<string | undefined>({ length: group.count });
    this.#notBefore = new Float64Array(group.honoursRetryAfter ? group.count : 0);
  }

  start(): void {
    this.#schedule(this.#group.from);
  }

  /** A member received a Retry-After that ends at `at`. */
  onRetryAfter(member: number, at: Millis): void {
    if (member < this.#notBefore.length) this.#notBefore[member] = at;
  }

  run(): void {
    const now = this.#simulator.now();
    const { count, name, weight, to, patience } = this.#group;
    if (now >= to) return;
    this.#schedule(now);
    const member = count === 1 ? 0 : Math.floor(this.#random() * count);
    const isWaiting = (this.#notBefore[member] ?? 0) > now;
    const { costRange } = this.#group;
    const units = costRange === undefined ? 1 : costRange.min + (costRange.max - costRange.min) * this.#random();
    this.#simulator.observer.onOffer(this.#index, !isWaiting, units);
    if (isWaiting) return;
    const client = (this.#names[member] ??= `${name}-${member}`);
    this.#simulator.arrive({
      facts: this.#facts,
      target: costRange === undefined ? this.#target : { ...this.#target, cost: units },
      group: this.#index,
      member,
      client,
      weight,
      clients: this,
      patience: patience === undefined ? Number.POSITIVE_INFINITY : patience(this.#random),
    });
  }

  #schedule(from: Millis): void {
    const rate = rateAt(this.#group, from) * this.#group.count;
    const next = this.#group.steps.find((step) => step.at > from)?.at ?? Number.POSITIVE_INFINITY;
    const at = rate <= 0 ? next : from + (Math.log(1 / (1 - this.#random())) * 1000) / rate;
    // The process is memoryless: at a change of rate the wait is drawn again.
    if (at >= next) this.#simulator.schedule(next, { run: () => this.#schedule(next), isProxyEvent: false });
    else if (at < this.#group.to) this.#simulator.schedule(at, this);
  }
}
