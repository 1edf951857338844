/**
 * Slotted ALOHA with finitely many users, as a Markov chain of its backlog: the linear feedback model of Kleinrock and Lam,
 * "Packet Switching in a Multiaccess Broadcast Channel: Performance Evaluation", IEEE Trans. Commun. 23 (1975), with
 * no propagation delay.
 */
export interface AlohaChannel {
  /** N, ≥ 1: each user has at most one packet. */
  readonly users: number;
  /** K, ≥ 1: a packet that collided is retransmitted in one of the next K slots; here, in each slot with p = 2/(K + 1). */
  readonly spread: number;
  /** Packets a slot when nobody is backlogged: each user without one sends a new one with σ = load ÷ N. Within [0, N]. */
  readonly load: number;
}

export interface StationaryState {
  /** S: successful packets a slot. */
  readonly throughput: number;
  /** Mean backlog: users with a collided packet, at the start of a slot. */
  readonly backlog: number;
  /** D: slots from a packet's first sending to the end of the slot in which it succeeds; `Infinity` if none does. */
  readonly delay: number;
  /** Probability of each backlog, from 0 to N. */
  readonly distribution: Float64Array;
}

/** Probabilities in each slot. */
export interface SlotProbabilities {
  /** σ: a user without a packet sends a new one. */
  readonly arrival: number;
  /** p: a backlogged user retransmits. */
  readonly retry: number;
}

export function slotProbabilities({ users, spread, load }: AlohaChannel): SlotProbabilities {
  return { arrival: Math.min(1, load / users), retry: Math.min(1, 2 / (spread + 1)) };
}

/**
 * The stationary distribution. The backlog falls by at most one a slot, so the flow from n + 1 to n equals the flow from n or below
 * to above n: each probability follows from those before it, in sums without a difference. O(N²) at worst.
 */
export function solveLamChain(channel: AlohaChannel): StationaryState {
  const { users } = channel;
  const chances = slotProbabilities(channel);
  const distribution = new Float64Array(users + 1);
  distribution[0] = 1;
  // The flow from the states so far to above the current backlog, by the distance above.
  let above = new Float64Array(users + 2);
  for (let n = 0; n < users; n += 1) {
    const here = distribution[n] ?? 0;
    addArrivalTransitions(above, n, users, here, chances);
    const rising = sum(above);
    const next = rising === 0 ? 0 : rising / departureProbability(n + 1, users, chances);
    if (next === Number.POSITIVE_INFINITY) {
      // The chain returns from there never, or too rarely for a double: the states below are transient.
      distribution.fill(0, 0, n + 1);
      distribution[n + 1] = 1;
      above.fill(0);
      continue;
    }
    distribution[n + 1] = next;
    if (next > RESCALE_ABOVE) {
      for (let m = 0; m <= n + 1; m += 1) distribution[m] = (distribution[m] ?? 0) / RESCALE_ABOVE;
      above = above.map((chance) => chance / RESCALE_ABOVE);
    }
    // Flows that end one state higher are no longer above it.
    above.copyWithin(0, 1);
    above[users + 1] = 0;
  }
  const total = sum(distribution);
  let [throughput, backlog] = [0, 0];
  for (let n = 0; n <= users; n += 1) {
    const probability = (distribution[n] ?? 0) / total;
    distribution[n] = probability;
    backlog += n * probability;
    throughput += successProbability(n, users, chances) * probability;
  }
  return {
    throughput,
    backlog,
    delay: throughput === 0 ? Number.POSITIVE_INFINITY : 1 + backlog / throughput,
    distribution,
  };
}

/** A bound far below the maximum of a double: beyond it all values are scaled down. */
const RESCALE_ABOVE = 1e200;

/** P(success) with n backlogged: a single new packet, or a single retransmission. */
export function successProbability(n: number, users: number, { arrival, retry }: SlotProbabilities): number {
  const idle = users - n;
  const firsts = idle * arrival * (1 - arrival) ** (idle - 1) * (1 - retry) ** n;
  return (idle === 0 ? 0 : firsts) + departureProbability(n, users, { arrival, retry });
}

/** P(n → n − 1): no new packet, and a single retransmission. */
function departureProbability(n: number, users: number, { arrival, retry }: SlotProbabilities): number {
  return n === 0 ? 0 : (1 - arrival) ** (users - n) * n * retry * (1 - retry) ** (n - 1);
}

/**
 * Adds to `above[k]` the flow from n to n + 1 + k: all new packets are backlogged, except a single one without a
 * retransmission.
 */
function addArrivalTransitions(
  above: Float64Array,
  n: number,
  users: number,
  weight: number,
  { arrival, retry }: SlotProbabilities,
): void {
  const idle = users - n;
  if (idle === 0 || arrival === 0) return;
  for (const [k, chance] of binomial(idle, arrival)) {
    if (k === 0) continue;
    const collides = k === 1 ? 1 - (1 - retry) ** n : 1;
    above[k - 1] = (above[k - 1] ?? 0) + weight * chance * collides;
  }
}

/**
 * Binomial probabilities, without negligible ones. Computed from the mode outwards: the probability of zero may
 * underflow a double.
 */
function binomial(trials: number, chance: number): readonly (readonly [successes: number, chance: number])[] {
  const odds = chance / (1 - chance);
  const mode = Math.min(trials, Math.floor((trials + 1) * chance));
  const found: [number, number][] = [[mode, 1]];
  let total = 1;
  for (let [k, weight] = [mode, 1]; k < trials && weight > NEGLIGIBLE; ) {
    k += 1;
    weight *= (odds * (trials - k + 1)) / k;
    found.push([k, weight]);
    total += weight;
  }
  for (let [k, weight] = [mode, 1]; k > 0 && weight > NEGLIGIBLE; k -= 1) {
    weight *= k / (odds * (trials - k + 1));
    found.push([k - 1, weight]);
    total += weight;
  }
  return found.map(([k, weight]) => [k, weight / total]);
}

const NEGLIGIBLE = 1e-30;

function sum(values: Float64Array): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}
