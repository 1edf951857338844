import type { Millis, Random, RequestFacts } from '../../core/exchange/attempt-outcome.ts';
import type { Asked } from '../upstream/nested-limit-models.ts';
import type { ClientGroup } from '../scenario.ts';
import { rateAt } from '../scenario.ts';
import { seededRandom } from '../seeded-random.ts';
import type { Due, World } from './simulator.ts';

/** A request on its way to a proxy. */
export interface Arriving {
  readonly facts: RequestFacts;
  readonly asked: Asked;
  readonly group: number;
  readonly member: number;
  readonly client: string;
  readonly weight: number;
  readonly population: Sender;
}

/** Who is to hear of a Retry-After. */
export interface Sender {
  /** Whether anything comes of `hear`. */
  readonly heeds: boolean;
  /** A member was told to come back at `at`. */
  hear(member: number, at: Millis): void;
}

/** The clients of a group, as one Poisson process: a million of them are a few columns, not a million timers. */
export class Population implements Due, Sender {
  readonly isOurs = false;
  readonly heeds: boolean;
  readonly #world: World;
  readonly #index: number;
  readonly #group: ClientGroup;
  readonly #facts: RequestFacts;
  readonly #asked: Asked;
  readonly #random: Random;
  /** Until when each member waits as it was told. */
  readonly #notBefore: Float64Array;
  /** Made once for each member: what is made anew has to be hashed anew. */
  readonly #names: (string | undefined)[];

  constructor(world: World, index: number, group: ClientGroup) {
    this.#world = world;
    this.#index = index;
    this.#group = group;
    this.heeds = group.honoursRetryAfter;
    this.#facts = { method: group.method, keyed: group.keyed, expectsContinue: false, priorAttempts: 0 };
    this.#asked = { method: group.method, path: group.path };
    this.#random = seededRandom(1 + index + Math.floor(world.random() * 2 ** 31));
    this.#names = Array.from<string | undefined>({ length: group.count });
    this.#notBefore = new Float64Array(group.honoursRetryAfter ? group.count : 0);
  }

  start(): void {
    this.#schedule(this.#group.from);
  }

  /** A member was told to come back at `at`. */
  hear(member: number, at: Millis): void {
    if (member < this.#notBefore.length) this.#notBefore[member] = at;
  }

  run(): void {
    const now = this.#world.now();
    const { count, name, weight, to } = this.#group;
    if (now >= to) return;
    this.#schedule(now);
    const member = count === 1 ? 0 : Math.floor(this.#random() * count);
    const waits = (this.#notBefore[member] ?? 0) > now;
    this.#world.observer.onOffer(this.#index, !waits);
    if (waits) return;
    const client = (this.#names[member] ??= `${name}-${member}`);
    this.#world.arrive({
      facts: this.#facts,
      asked: this.#asked,
      group: this.#index,
      member,
      client,
      weight,
      population: this,
    });
  }

  #schedule(from: Millis): void {
    const rate = rateAt(this.#group, from) * this.#group.count;
    const next = this.#group.steps.find((step) => step.at > from)?.at ?? Number.POSITIVE_INFINITY;
    const at = rate <= 0 ? next : from + (Math.log(1 / (1 - this.#random())) * 1000) / rate;
    // Memoryless: at a change of rate the wait begins anew.
    if (at >= next) this.#world.at(next, { run: () => this.#schedule(next), isOurs: false });
    else if (at < this.#group.to) this.#world.at(at, this);
  }
}
