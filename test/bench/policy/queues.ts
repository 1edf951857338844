import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import { shuffle } from './choices.ts';
import type { Size } from './line.ts';
import { Line } from './line.ts';

export const OPERATIONS = ['enqueue', 'leave', 're-order', 'serve', 'expire', 'nextWake'] as const;
export type Operation = (typeof OPERATIONS)[number];

export interface Queues {
  readonly size: Size;
  /** µs each. */
  readonly costs: Readonly<Record<Operation, number>>;
  /** What should not be; empty when all went well. */
  readonly faults: readonly string[];
}

/** The first warms up. Of the others the fastest counts: others on the machine can only slow it down. */
const ROUNDS = 5;

/** What it costs to wait, and to stop waiting, while from half of that many to all of them wait. */
export function measureQueues(size: Size, operations: number): Queues {
  const half = size.queued / 2;
  const laps = Math.max(1, Math.ceil(operations / half));
  const faults: string[] = [];
  const costs = none(Number.POSITIVE_INFINITY);
  for (let round = 0; round < ROUNDS; round += 1) {
    const spent = none(0);
    for (let lap = 0; lap < laps; lap += 1) run(size, spent, faults);
    if (round === 0) continue;
    for (const name of OPERATIONS) costs[name] = Math.min(costs[name], (1000 * spent[name]) / (laps * half));
  }
  return { size, costs, faults: [...new Set(faults)] };
}

/** A line of its own, and each operation for half of it. */
function run(size: Size, spent: Record<Operation, number>, faults: string[]): void {
  const line = new Line(size);
  const half = size.queued / 2;
  const time = (name: Operation, work: () => void): void => {
    const since = performance.now();
    work();
    spent[name] += performance.now() - since;
  };
  const require = (what: string, is: number, expected: number): void => {
    if (is !== expected) faults.push(`${what}: ${is}, not ${expected}, of ${size.queued} of ${size.clients} clients`);
  };

  line.enqueue(line.makeTickets(half));
  const leaving = line.makeTickets(half);
  time('enqueue', () => line.enqueue(leaving));
  require('queued', line.queued, size.queued);
  let told = Number.NaN;
  time('nextWake', () => (told = line.look(half)));
  require('a wake that is known', Number(Number.isFinite(told) && told > 0), 1);
  time('re-order', () => line.reorder(half));
  require('queued after being re-ordered', line.queued, size.queued);
  shuffle(leaving, seededRandom(5));
  time('leave', () => line.leave(leaving));
  require('queued after half has left', line.queued, half);
  line.enqueue(line.makeTickets(half, 'impatient'));
  time('expire', () => line.wake(half));
  require('expired', line.expired, half);
  line.enqueue(line.makeTickets(half));
  time('serve', () => line.wake(half));
  require('served', line.served, half);
  require('queued in the end', line.queued, half);
}

function none(cost: number): Record<Operation, number> {
  return { enqueue: cost, leave: cost, 're-order': cost, serve: cost, expire: cost, nextWake: cost };
}
