import { decayDemand, raiseDemand } from './client-allowance.ts';
import type { Millis, PerSecond } from '../exchange/attempt-outcome.ts';

const WINDOW: Millis = 2000;

/** Who is active, with what weight (in this window of 2 s or the last, whichever is more), and how much all ask for. */
export class Activity {
  #window = Number.NEGATIVE_INFINITY;
  #weight = 0;
  #clients = 0;
  #previousWeight = 0;
  #previousClients = 0;
  #demand: PerSecond = 0;
  #arrivedAt = Number.NEGATIVE_INFINITY;

  /** Notes an arrival; a client counts once a window. */
  note(now: Millis, previousArrival: Millis, weight: number): void {
    this.#roll(now);
    this.#demand = raiseDemand(this.#demandAt(now));
    this.#arrivedAt = now;
    if (Math.floor(previousArrival / WINDOW) === this.#window) return;
    this.#weight += weight;
    this.#clients += 1;
  }

  /** Never less than `own`, which is active by asking. */
  weight(now: Millis, own: number): number {
    this.#roll(now);
    return Math.max(own, this.#weight, this.#previousWeight);
  }

  clients(now: Millis): number {
    this.#roll(now);
    return Math.max(1, this.#clients, this.#previousClients);
  }

  /**
   * The average demand of all clients but one, in arrivals a second; 0 when it is alone.
   * @param own the demand of that one
   * @param extra clients that do not count: where an address is one client, all of its keys but the first
   */
  demandOfOthers(own: PerSecond, now: Millis, extra = 0): PerSecond {
    const others = this.clients(now) - extra - 1;
    return others <= 0 ? 0 : Math.max(0, this.#demandAt(now) - own) / others;
  }

  #demandAt(now: Millis): PerSecond {
    return this.#arrivedAt === Number.NEGATIVE_INFINITY ? 0 : decayDemand(this.#demand, now - this.#arrivedAt);
  }

  #roll(now: Millis): void {
    const window = Math.floor(now / WINDOW);
    if (window === this.#window) return;
    const isNext = window === this.#window + 1;
    this.#previousWeight = isNext ? this.#weight : 0;
    this.#previousClients = isNext ? this.#clients : 0;
    this.#weight = 0;
    this.#clients = 0;
    this.#window = window;
  }
}
