import type { PartFigures } from './parts.ts';
import type { Queues } from './queues.ts';
import { OPERATIONS } from './queues.ts';

export interface JudgedGoal {
  readonly goal: string;
  readonly isMet: boolean;
}

const MEMORY = 150;
const DECISION = 1.5;
const PAUSE = 60;
/**
 * Maximum exponent of the cost's growth with the size: a hundredfold for ten thousand times the size. Linear cost has
 * exponent 1; logarithmic cost grows fourfold from ten to ten thousand, and a few times more as it outgrows the caches.
 */
const POWER = 1 / 2;

/** Judges the goals with a million clients. */
export function judge(all: readonly PartFigures[]): JudgedGoal[] {
  return all.flatMap(judgeOne);
}

function judgeOne(figures: PartFigures): JudgedGoal[] {
  switch (figures.part) {
    case 'memory': {
      const beyond = figures.whole - figures.key;
      const goal = `a client takes at most ${MEMORY} B beyond its key: ${beyond.toFixed(0)} B`;
      return [{ goal, isMet: beyond <= MEMORY }];
    }
    case 'pauses': {
      const full = median(figures.full);
      return [{ goal: `a full collection takes less than ${PAUSE} ms: ${full.toFixed(0)} ms`, isMet: full < PAUSE }];
    }
    case 'decisions': {
      const { load, law, decision } = figures;
      const [least] = decision;
      if (load === 'overrun') return []; // reported without a goal, because a queued request costs another wake and check
      const goal = `a decision takes at most ${DECISION} µs (${load}, ${law}): ${least.toFixed(2)} µs`;
      return [{ goal, isMet: least <= DECISION }];
    }
    case 'queues':
      return OPERATIONS.map((name) => {
        const power = growth(figures.queues, name);
        const what = `${name} grows no faster than the square root of ${sizeOf(figures.queues)}`;
        return { goal: `${what}: as their power ${power.toFixed(2)}`, isMet: power <= POWER };
      });
  }
}

export function median(sorted: readonly number[]): number {
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** Checks counts that must hold for any run. Returns the violations. */
export function findFaults(all: readonly PartFigures[]): string[] {
  return all.flatMap((figures) => {
    const faults: string[] = [];
    const require = (what: string, is: number, expected: number): void => {
      if (is !== expected) faults.push(`${figures.part}: ${what}: ${is}, not ${expected}`);
    };
    if (figures.part === 'queues') return figures.queues.flatMap((each) => each.faults);
    require('clients tracked', figures.tracked, figures.clients);
    if (figures.part === 'decisions') {
      const { made, passed, refused, waiting } = figures.counts;
      require('decisions that were made or are pending', passed + refused + waiting, made);
      if (figures.load !== 'overrun') require('passed', passed, made);
      else if (refused === 0 || passed === 0) faults.push(`overrun: ${passed} passed, ${refused} refused`);
    }
    return faults;
  });
}

/** Returns the exponent of the cost's growth from the smallest size to the largest. */
function growth(queues: readonly Queues[], name: (typeof OPERATIONS)[number]): number {
  const [first, last] = [queues[0], queues.at(-1)];
  if (first === undefined || last === undefined) return Number.NaN;
  const sizes = Math.max(last.size.queued / first.size.queued, last.size.clients / first.size.clients);
  return Math.log(last.costs[name] / first.costs[name]) / Math.log(sizes);
}

function sizeOf(queues: readonly Queues[]): string {
  return queues[0]?.size.queued === queues[1]?.size.queued ? 'clients' : 'requests';
}
