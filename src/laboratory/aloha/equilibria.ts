import type { AlohaChannel, SlotChances } from './lam-chain.ts';
import { chancesOf, successChance } from './lam-chain.ts';

/** A backlog at which as much comes in as comes through. */
export interface Equilibrium {
  /** Between 0 and N; a fraction where it lies between two states. */
  readonly backlog: number;
  /** What comes through there, packets a slot. */
  readonly throughput: number;
  /** Whether the channel returns to it: below it the backlog grows, above it falls. */
  readonly stable: boolean;
}

/**
 * From the smallest backlog on. One stable point is a stable channel; with three the first is good until chance carries
 * the backlog over the second, and then it goes to the third, where next to nothing comes through.
 */
export function findEquilibria(channel: AlohaChannel): Equilibrium[] {
  const { users } = channel;
  const chances = chancesOf(channel);
  // Who sends in each slot comes through alone: two who have collided never do, and of all backlogs only that of everybody stays.
  if (chances.retry === 1 && users > 1) return [{ backlog: users, throughput: 0, stable: true }];
  const drift = (n: number): number => (users - n) * chances.arrival - successChance(n, users, chances);
  const found: Equilibrium[] = [];
  let before = drift(0);
  // A single user never collides.
  if (before <= 0) found.push({ backlog: 0, throughput: successChance(0, users, chances), stable: true });
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

/** What comes through, packets a slot, at a backlog from 0 to `users`: on the line between the two states it lies between. */
export function throughputAt(backlog: number, users: number, chances: SlotChances): number {
  const below = Math.floor(backlog);
  const least = successChance(below, users, chances);
  if (below === backlog) return least;
  return least + (backlog - below) * (successChance(below + 1, users, chances) - least);
}

/**
 * Whether the channel has one equilibrium whatever its load. For each backlog there is one load that keeps it as it is; while that
 * load grows with the backlog, no load has two.
 */
export function isStableAtEveryLoad({ users, spread }: Omit<AlohaChannel, 'load'>): boolean {
  const { retry } = chancesOf({ users, spread, load: 0 });
  if (retry === 1) return users === 1;
  let before = 0;
  for (let n = 1; n < users; n += 1) {
    const arrival = keepingArrival(n, users, retry);
    if (arrival < before) return false;
    before = arrival;
  }
  return true;
}

/**
 * The largest N that is stable at every load with this K. A load line touches the curve of equilibria where G = 2, at N close to
 * 2(K + 1); from K = 2 on it has been 2K wherever we looked, so that is where the search begins.
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
  const judge = (spread: number): 'too small' | 'enough' | 'too large' => {
    const channel = { users, spread, load };
    const equilibria = findEquilibria(channel);
    const backlog = equilibria.length === 1 ? equilibria[0]?.backlog : undefined;
    if (backlog === undefined) return 'too small';
    if (backlog < users / 2) return 'enough';
    return isCrowded(Math.round(backlog), channel) ? 'too small' : 'too large';
  };
  if (judge(1) === 'enough') return 1;
  const last = lastTrue(1, (spread) => spread <= most && judge(spread) === 'too small');
  return last < most && judge(last + 1) === 'enough' ? last + 1 : undefined;
}

/** Whether more would come through if the backlogged sent less often: where the derivative of S by p is below 0. */
function isCrowded(n: number, channel: AlohaChannel): boolean {
  const { arrival, retry } = chancesOf(channel);
  return (1 - arrival) * (1 - n * retry) < (channel.users - n) * arrival * (1 - retry);
}

/** σ at which a backlog of n stays: what comes in is what comes through. */
function keepingArrival(n: number, users: number, retry: number): number {
  const surplus = (arrival: number): number => {
    const chances: SlotChances = { arrival, retry };
    return (users - n) * arrival - successChance(n, users, chances);
  };
  return bisect(surplus, 0, 1);
}

/** Where a function changes its sign within [low, high], to the last bit but a few. */
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
