import type { AlohaChannel, SlotProbabilities } from './lam-chain.ts';
import { slotProbabilities, successProbability } from './lam-chain.ts';

/** A backlog at which arrivals equal throughput. */
export interface Equilibrium {
  /** Between 0 and N; a fraction where it lies between two states. */
  readonly backlog: number;
  /** Throughput there, packets a slot. */
  readonly throughput: number;
  /** Whether the channel returns to it: below it the backlog grows, above it falls. */
  readonly stable: boolean;
}

/**
 * Equilibria by ascending backlog. One stable point is a stable channel; with three, the first holds until chance carries
 * the backlog over the second; it then goes to the third, where throughput is close to 0.
 */
export function findEquilibria(channel: AlohaChannel): Equilibrium[] {
  const { users } = channel;
  const chances = slotProbabilities(channel);
  // With p = 1 two collided packets never separate: only the backlog of all users is an equilibrium.
  if (chances.retry === 1 && users > 1) return [{ backlog: users, throughput: 0, stable: true }];
  const drift = (n: number): number => (users - n) * chances.arrival - successProbability(n, users, chances);
  const found: Equilibrium[] = [];
  let before = drift(0);
  // A single user never collides.
  if (before <= 0) found.push({ backlog: 0, throughput: successProbability(0, users, chances), stable: true });
  for (let n = 1; n <= users; n += 1) {
    const here = drift(n);
    if (before > 0 !== here > 0) {
      const backlog = n - 1 + before / (before - here);
      found.push({ backlog, throughput: throughputAt(backlog, users, chances), stable: before > 0 });
    }
    before = here;
  }
  return found;
}

/** Throughput in packets a slot at a backlog from 0 to `users`, interpolated between states. */
export function throughputAt(backlog: number, users: number, chances: SlotProbabilities): number {
  const below = Math.floor(backlog);
  const least = successProbability(below, users, chances);
  if (below === backlog) return least;
  return least + (backlog - below) * (successProbability(below + 1, users, chances) - least);
}

/**
 * Whether the channel has one equilibrium at every load. Each backlog is kept by one load; if that
 * load grows with the backlog, no load has two equilibria.
 */
export function isStableAtEveryLoad({ users, spread }: Omit<AlohaChannel, 'load'>): boolean {
  const { retry } = slotProbabilities({ users, spread, load: 0 });
  if (retry === 1) return users === 1;
  let before = 0;
  for (let n = 1; n < users; n += 1) {
    const arrival = equilibriumArrival(n, users, retry);
    if (arrival < before) return false;
    before = arrival;
  }
  return true;
}

/**
 * The largest N that is stable at every load with this K. A load line touches the curve of equilibria where G = 2, at N close to
 * 2(K + 1); from K = 2 on it was 2K in every case computed, so the search begins there.
 */
export function largestStableUsers(spread: number): number {
  const holds = (users: number): boolean => isStableAtEveryLoad({ users, spread });
  const guess = 2 * spread;
  return holds(guess) ? lastTrue(guess, holds) : lastTrue(1, holds);
}

/**
 * The smallest K at which the channel has one equilibrium at this load, and less than half of the users wait there; undefined where
 * no K up to `most` gives one.
 */
export function smallestStableSpread({ users, load }: Omit<AlohaChannel, 'spread'>, most = 1e6): number | undefined {
  const classify = (spread: number): 'too small' | 'enough' | 'too large' => {
    const channel = { users, spread, load };
    const equilibria = findEquilibria(channel);
    const backlog = equilibria.length === 1 ? equilibria[0]?.backlog : undefined;
    if (backlog === undefined) return 'too small';
    if (backlog < users / 2) return 'enough';
    return isOvercrowded(Math.round(backlog), channel) ? 'too small' : 'too large';
  };
  if (classify(1) === 'enough') return 1;
  const last = lastTrue(1, (spread) => spread <= most && classify(spread) === 'too small');
  return last < most && classify(last + 1) === 'enough' ? last + 1 : undefined;
}

/** Whether less frequent retransmissions would raise throughput: the derivative of S by p is below 0. */
function isOvercrowded(n: number, channel: AlohaChannel): boolean {
  const { arrival, retry } = slotProbabilities(channel);
  return (1 - arrival) * (1 - n * retry) < (channel.users - n) * arrival * (1 - retry);
}

/** σ at which a backlog of n is an equilibrium. */
function equilibriumArrival(n: number, users: number, retry: number): number {
  const surplus = (arrival: number): number => {
    const chances: SlotProbabilities = { arrival, retry };
    return (users - n) * arrival - successProbability(n, users, chances);
  };
  return bisect(surplus, 0, 1);
}

/** The root of a function within [low, high], by bisection to almost full precision. */
function bisect(f: (x: number) => number, low: number, high: number): number {
  const rises = f(low) <= 0;
  let [from, to] = [low, high];
  for (let i = 0; i < 60 && to - from > 1e-15 * to; i += 1) {
    const middle = (from + to) / 2;
    if (f(middle) <= 0 === rises) from = middle;
    else to = middle;
  }
  return (from + to) / 2;
}

/** The last whole number from `first` on for which it holds, when it holds for `first` and, once false, stays false. */
function lastTrue(first: number, holds: (value: number) => boolean): number {
  let low = first;
  let step = 1;
  while (holds(low + step)) {
    low += step;
    step *= 2;
  }
  let high = low + step;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (holds(middle)) low = middle;
    else high = middle;
  }
  return low;
}
