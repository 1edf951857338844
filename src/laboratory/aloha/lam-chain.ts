/**
 * Slotted ALOHA with finitely many users, as a Markov chain of its backlog: the linear feedback model of Kleinrock and Lam,
 * "Packet Switching in a Multiaccess Broadcast Channel: Performance Evaluation", IEEE Trans. Commun. 23 (1975), with
 * no propagation delay.
 */
export interface AlohaChannel {
  /** N, ≥ 1: each has at most one packet. */
  readonly users: number;
  /** K, ≥ 1: who has collided tries again in one of the next K slots, which here is in each slot with p = 2/(K + 1). */
  readonly spread: number;
  /** Packets a slot when nobody is backlogged: each user without one sends a new one with σ = load ÷ N. Within [0, N]. */
  readonly load: number;
}

export interface Stationary {
  /** S: packets a slot that come through. */
  readonly throughput: number;
  /** Users who have collided and not come through yet, at the beginning of a slot. */
  readonly backlog: number;
  /** D: slots from a packet's first sending to the end of the slot in which it comes through; `Infinity` when none does. */
  readonly delay: number;
  /** How likely each backlog is, from 0 to N. */
  readonly distribution: Float64Array;
}

/** In each slot, of everybody. */
export interface SlotChances {
  /** σ: that a user without a packet sends a new one. */
  readonly arrival: number;
  /** p: that a backlogged user sends again. */
  readonly retry: number;
}

export function chancesOf({ users, spread, load }: AlohaChannel): SlotChances {
  return { arrival: Math.min(1, load / users), retry: Math.min(1, 2 / (spread + 1)) };
}

/**
 * The chain in equilibrium. The backlog falls by at most one a slot, so what goes from n + 1 to n is what goes from n or below
 * to above n: each probability follows from those before it, in sums without a difference. O(N²) at worst.
 */
export function solveLamChain(channel: AlohaChannel): Stationary {
  const { users } = channel;
  const chances = chancesOf(channel);
  const distribution = new Float64Array(users + 1);
  distribution[0] = 1;
  // What rises from where it has been so far to above the backlog looked at, by how far above.
  let above = new Float64Array(users + 2);
  for (let n = 0; n < users; n += 1) {
    const here = distribution[n] ?? 0;
    addRises(above, n, users, here, chances);
    const rising = sum(above);
    const next = rising === 0 ? 0 : rising / fall(n + 1, users, chances);
    if (next === Number.POSITIVE_INFINITY) {
      // Nobody comes back from there, or so rarely that no double tells: what is below is left for ever.
      distribution.fill(0, 0, n + 1);
      distribution[n + 1] = 1;
      above.fill(0);
      continue;
    }
    distribution[n + 1] = next;
    if (next > HUGE) {
      for (let m = 0; m <= n + 1; m += 1) distribution[m] = (distribution[m] ?? 0) / HUGE;
      above = above.map((chance) => chance / HUGE);
    }
    // Those who come to rest one higher are no longer above it.
    above.copyWithin(0, 1);
    above[users + 1] = 0;
  }
  const total = sum(distribution);
  let [throughput, backlog] = [0, 0];
  for (let n = 0; n <= users; n += 1) {
    const probability = (distribution[n] ?? 0) / total;
    distribution[n] = probability;
    backlog += n * probability;
    throughput += successChance(n, users, chances) * probability;
  }
  return {
    throughput,
    backlog,
    delay: throughput === 0 ? Number.POSITIVE_INFINITY : 1 + backlog / throughput,
    distribution,
  };
}

/** Far below what a double holds: then all so far is made smaller. */
const HUGE = 1e200;

/** P(one packet comes through) with n backlogged: one of the others' new ones, or one sent again. */
export function successChance(n: number, users: number, { arrival, retry }: SlotChances): number {
  const idle = users - n;
  const firsts = idle * arrival * (1 - arrival) ** (idle - 1) * (1 - retry) ** n;
  return (idle === 0 ? 0 : firsts) + fall(n, users, { arrival, retry });
}

/** P(n → n − 1): nobody sends a new one, and one of the backlogged sends alone. */
function fall(n: number, users: number, { arrival, retry }: SlotChances): number {
  return n === 0 ? 0 : (1 - arrival) ** (users - n) * n * retry * (1 - retry) ** (n - 1);
}

/** Adds to `above[k]` what goes from n to n + 1 + k: all new packets are backlogged, unless there is one and nobody else sends. */
function addRises(
  above: Float64Array,
  n: number,
  users: number,
  weight: number,
  { arrival, retry }: SlotChances,
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
 * How likely each number of successes is, but for those that are all but impossible. From the likeliest on: that of none may be
 * less than a double can tell.
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
