import { seededRandom } from '../../../src/simulator/seeded-random.ts';
import { shuffle } from './choose-clients.ts';
import type { Size } from './queue-harness.ts';
import { QueueHarness } from './queue-harness.ts';

export const OPERATIONS = ['enqueue', 'leave', 're-order', 'serve', 'expire', 'nextWake'] as const;
export type Operation = (typeof OPERATIONS)[number];

export interface Queues {
  readonly size: Size;
  /** µs per operation. */
  readonly costs: Readonly<Record<Operation, number>>;
  /** Violated conditions; empty if there are none. */
  readonly faults: readonly string[];
}

/** The first round is a warm-up; the fastest of the others counts, because other load can only slow it down. */
const ROUNDS = 5;

/** Measures enqueueing and dequeueing while the queue is between half full and full. */
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

/** Runs each operation for half of a new queue. */
function run(size: Size, spent: Record<Operation, number>, faults: string[]): void {
  const line = new QueueHarness(size);
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
  let wakeSum = Number.NaN;
  time('nextWake', () => (wakeSum = line.look(half)));
  require('a wake that is known', Number(Number.isFinite(wakeSum) && wakeSum > 0), 1);
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
