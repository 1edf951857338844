import type { Millis, Random } from '../../../../src/core/scalars.ts';
import { ControllerStore } from '../controller-store.ts';
import type { Controller } from '../controllers.ts';
import { PassingMeter } from '../passing-meter.ts';
import { perClient, unqueued } from './adapt.ts';

const K = 2;
const SECONDS = 120;

/** Count over the last two minutes, with a resolution of one second. */
class Recent {
  readonly #counts = new Uint32Array(SECONDS);
  #newest = 0;
  #total = 0;

  add(now: Millis): void {
    this.#turn(now);
    const at = this.#newest % SECONDS;
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    this.#total += 1;
  }

  total(now: Millis): number {
    this.#turn(now);
    return this.#total;
  }

  #turn(now: Millis): void {
    const second = Math.floor(now / 1000);
    for (let next = Math.max(this.#newest + 1, second - SECONDS + 1); next <= second; next += 1) {
      this.#total -= this.#counts[next % SECONDS] ?? 0;
      this.#counts[next % SECONDS] = 0;
    }
    this.#newest = Math.max(this.#newest, second);
  }
}

export class SreMeter extends PassingMeter {
  readonly #random: Random;
  readonly #requests = new Recent();
  readonly #accepts = new Recent();

  constructor(random: Random) {
    super();
    this.#random = random;
  }

  /** Called once for each arrival, because there is no queue; counts every request, refused or not. */
  override delay(now: Millis): Millis {
    const requests = this.#requests.total(now);
    const refusal = Math.max(0, (requests - K * this.#accepts.total(now)) / (requests + 1));
    this.#requests.add(now);
    return this.#random() < refusal ? Number.POSITIVE_INFINITY : 0;
  }

  override expectedDelay(): Millis {
    return 0;
  }

  override onAccepted(_sentAt: Millis, _among: number, now: Millis): undefined {
    this.#accepts.add(now);
  }
}

/**
 * Client-side throttling of Google's SRE book: each client refuses at random with the probability
 * max(0, (requests − K·accepts) ÷ (requests + 1)) over two minutes, K = 2. (Beyer et al., "Site Reliability
 * Engineering", 2016, chapter 21, "Handling Overload".)
 */
export const SRE: Controller = {
  name: 'sre',
  adapt: (scenario) => unqueued(perClient(scenario)),
  makeStore: ({ policy }, random, listen) =>
    new ControllerStore({ policy, listen, makeMeter: () => new SreMeter(random) }),
};
