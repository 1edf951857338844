import type { Figures } from './parts.ts';
import type { Queues } from './queues.ts';
import { OPERATIONS } from './queues.ts';

export interface Judged {
  readonly goal: string;
  readonly isMet: boolean;
}

const MEMORY = 150;
const DECISION = 1.5;
const PAUSE = 60;
/**
 * Cost may grow as this power of the size: for ten thousand times as many, a hundredfold. What is linear grows as the first;
 * what is logarithmic fourfold from ten to ten thousand, and some times that as it outgrows one cache after the other.
 */
const POWER = 1 / 2;

/** What is to be met with a million clients. */
export function judge(all: readonly Figures[]): Judged[] {
  return all.flatMap(judgeOne);
}

function judgeOne(figures: Figures): Judged[] {
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
      if (load === 'overrun') return []; // told, and not judged: who waits costs a wake and a second look
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

/** What all must have done, however little was run. Returns what they have not. */
export function findFaults(all: readonly Figures[]): string[] {
  return all.flatMap((figures) => {
    const faults: string[] = [];
    const require = (what: string, is: number, expected: number): void => {
      if (is !== expected) faults.push(`${figures.part}: ${what}: ${is}, not ${expected}`);
    };
    if (figures.part === 'queues') return figures.queues.flatMap((each) => each.faults);
    require('clients tracked', figures.tracked, figures.clients);
    if (figures.part === 'decisions') {
      const { made, passed, refused, waiting } = figures.counts;
      require('decisions that were told or are awaited', passed + refused + waiting, made);
      if (figures.load !== 'overrun') require('passed', passed, made);
      else if (refused === 0 || passed === 0) faults.push(`overrun: ${passed} passed, ${refused} refused`);
    }
    return faults;
  });
}

/** The power of the size as which the cost grows, from the smallest to the largest. */
function growth(queues: readonly Queues[], name: (typeof OPERATIONS)[number]): number {
  const [first, last] = [queues[0], queues.at(-1)];
  if (first === undefined || last === undefined) return Number.NaN;
  const sizes = Math.max(last.size.queued / first.size.queued, last.size.clients / first.size.clients);
  return Math.log(last.costs[name] / first.costs[name]) / Math.log(sizes);
}

function sizeOf(queues: readonly Queues[]): string {
  return queues[0]?.size.queued === queues[1]?.size.queued ? 'clients' : 'requests';
}
