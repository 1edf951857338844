import { RecencyMap } from '../collections/recency-map.ts';

/** The weight of the last cost in the mean and the variance, after as many costs as its inverse. */
const GAIN = 1 / 32;
/** A cost of more than so many times the mean counts as so much: a single one says little, and a client may have chosen it. */
const MAX_RATIO = 10;
/** Fewer costs of a client say less than those of its route. */
const MIN_OWN_COSTS = 3;
/** Clients times routes times limits whose own costs are remembered. */
const MAX_CLIENTS = 10_000;
/** Routes times limits with costs. Beyond this, a cost is not learned. */
const MAX_LEARNED = 1000;

/**
 * The exponentially weighted mean and variance of the costs of one route at one limit (West, "Updating Mean and Variance Estimates",
 * 1979, with a constant gain). The first costs count equally.
 */
export class ExpectedCost {
  mean = 0;
  #variance = 0;
  count = 0;

  /** The standard deviation, in units. */
  get spread(): number {
    return Math.sqrt(this.#variance);
  }

  /** @param cost in units, ≥ 0 and finite @param usual the configured cost */
  record(cost: number, usual: number): void {
    this.count += 1;
    const gain = Math.max(GAIN, 1 / this.count);
    const difference = Math.min(cost, MAX_RATIO * Math.max(1, usual, this.mean)) - this.mean;
    this.mean += gain * difference;
    this.#variance = (1 - gain) * (this.#variance + gain * difference * difference);
  }
}

/**
 * The learned costs of one upstream, by limit and route, and within these by client: what clients send to one route may differ in cost
 * by orders of magnitude. Bounded: see `MAX_LEARNED` and `MAX_CLIENTS`.
 */
export class ExpectedCosts {
  readonly #byRoute = new Map<string, ExpectedCost>();
  /** The client without a response for longest is the first to be forgotten. */
  readonly #byClient = new RecencyMap<string, ExpectedCost>();

  /** The mean cost of the requests of a client, or else of all requests of the route; undefined before the first cost was recorded. */
  mean(route: string, limit: string, client: string): number | undefined {
    const key = `${limit}\0${route}`;
    const own = this.#byClient.get(`${key}\0${client}`);
    return own !== undefined && own.count >= MIN_OWN_COSTS ? own.mean : this.#byRoute.get(key)?.mean;
  }

  /** A cost of the client was not read. Until others are, its requests count as those of the route: it may hide what they cost. */
  forgetClient(route: string, limit: string, client: string): void {
    this.#byClient.delete(`${limit}\0${route}\0${client}`);
  }

  /** What a request counts as whose response names no cost: the mean and the spread of its route. Undefined as `mean`. */
  ofUnread(route: string, limit: string): number | undefined {
    const expected = this.ofRoute(route, limit);
    return expected && expected.mean + expected.spread;
  }

  /** The mean and the spread of the costs of a route; undefined before the first. */
  ofRoute(route: string, limit: string): Pick<ExpectedCost, 'mean' | 'spread'> | undefined {
    return this.#byRoute.get(`${limit}\0${route}`);
  }

  /** @param usual the configured cost */
  record(route: string, limit: string, client: string, cost: number, usual: number): void {
    const key = `${limit}\0${route}`;
    let expected = this.#byRoute.get(key);
    if (expected === undefined) {
      if (this.#byRoute.size >= MAX_LEARNED) return;
      expected = new ExpectedCost();
      this.#byRoute.set(key, expected);
    }
    expected.record(cost, usual);
    const ownKey = `${key}\0${client}`;
    const own = this.#byClient.get(ownKey) ?? new ExpectedCost();
    own.record(cost, usual);
    this.#byClient.set(ownKey, own);
    if (this.#byClient.size > MAX_CLIENTS) this.#byClient.deleteOldest();
  }
}
