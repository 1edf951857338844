import type { Limit } from '../limits/limit.ts';
import { decayDemand, raiseDemand } from './client-allowance.ts';
import type { Ticket } from './ticket.ts';
import type { Millis, PerSecond } from '../scalars.ts';

/** Clients are active in the window of their last arrival, and in the next one. */
export const ACTIVITY_WINDOW: Millis = 2000;

/** The number, weight and demand of the active clients, over the current and the previous window of 2 s, whichever is more. */
export class ActiveClients {
  #window = Number.NEGATIVE_INFINITY;
  #weight = 0;
  #clients = 0;
  #previousWeight = 0;
  #previousClients = 0;
  #demand: PerSecond = 0;
  #freshDemand: PerSecond = 0;
  #arrivedAt = Number.NEGATIVE_INFINITY;
  /** Whose request arrived last, and when the last one of any other client or address did. */
  #lastKey = '';
  #othersArrivedAt = Number.NEGATIVE_INFINITY;

  /**
   * Records an arrival. A client counts once per window.
   * @param fairnessKey see `Ticket`
   * @param isReturn the client returns when it was told to: the request was counted when it was refused
   */
  onArrival(fairnessKey: string, now: Millis, previousArrival: Millis, weight: number, isReturn = false): void {
    this.#roll(now);
    if (fairnessKey !== this.#lastKey) {
      this.#lastKey = fairnessKey;
      this.#othersArrivedAt = this.#arrivedAt;
    }
    this.#freshDemand = this.#decayed(this.#freshDemand, now);
    if (!isReturn) this.#freshDemand = raiseDemand(this.#freshDemand);
    this.#demand = raiseDemand(this.#decayed(this.#demand, now));
    this.#arrivedAt = now;
    if (Math.floor(previousArrival / ACTIVITY_WINDOW) === this.#window) return;
    this.#weight += weight;
    this.#clients += 1;
  }

  /** The weight of the active clients, at least `own`: a client that asks is active. */
  totalWeight(now: Millis, own: number): number {
    this.#roll(now);
    return Math.max(own, this.#weight, this.#previousWeight);
  }

  /** When a request of another client or address arrived last; −Infinity if none did. */
  lastArrivalOfOthers(fairnessKey: string): Millis {
    return fairnessKey === this.#lastKey ? this.#othersArrivedAt : this.#arrivedAt;
  }

  count(now: Millis): number {
    this.#roll(now);
    return Math.max(1, this.#clients, this.#previousClients);
  }

  /**
   * The mean demand of all other clients, in arrivals a second; 0 if there are none.
   * @param own the demand of this client
   */
  meanDemandOfOthers(own: PerSecond, now: Millis): PerSecond {
    const others = this.count(now) - 1;
    return others <= 0 ? 0 : Math.max(0, this.#decayed(this.#demand, now) - own) / others;
  }

  /** The demand of all clients, in requests a second: those that return when they were told to are not counted again. */
  freshDemand(now: Millis): PerSecond {
    return this.#decayed(this.#freshDemand, now);
  }

  #decayed(demand: PerSecond, now: Millis): PerSecond {
    return this.#arrivedAt === Number.NEGATIVE_INFINITY ? 0 : decayDemand(demand, now - this.#arrivedAt);
  }

  #roll(now: Millis): void {
    const window = Math.floor(now / ACTIVITY_WINDOW);
    if (window === this.#window) return;
    const isNext = window === this.#window + 1;
    this.#previousWeight = isNext ? this.#weight : 0;
    this.#previousClients = isNext ? this.#clients : 0;
    this.#weight = 0;
    this.#clients = 0;
    this.#window = window;
  }
}

/** φ: the client's share of the rate, by weight among the active clients. A limit of one client is not shared. */
export function fairShare(
  { weight }: Ticket,
  { ref }: Limit,
  rate: PerSecond,
  activeClients: ActiveClients,
  now: Millis,
): PerSecond {
  const active = ref.scope === 'upstream' ? activeClients.totalWeight(now, weight) : weight;
  return (rate * weight) / active;
}
