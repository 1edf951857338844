import type { ResponseOutcome } from './execute-plan.ts';

/** Counts of requests: each counts under exactly one of the last four. */
export interface PracticeCounts {
  readonly received: number;
  /** Accepted by the limit, without a failure. */
  readonly accepted: number;
  readonly rejected: number;
  /** Accepted by the limit and failed at random, or the upstream was down. */
  readonly errors: number;
  /** Answered by a script. */
  readonly scripted: number;
}

export type PracticeCountKind = Exclude<keyof PracticeCounts, 'received'>;

export interface PracticeStats extends PracticeCounts {
  /** Milliseconds since the start or the last reset. Steps, outages and bursts use this time. */
  readonly elapsed: number;
  /** The limit in force, in the unit of its kind. */
  readonly limit: number;
  readonly inFlight: number;
  /** Responses by status, and `reset`, `hang`, `cut`, `gone` (the client had disconnected). */
  readonly answered: Readonly<Record<string, number>>;
  readonly byClient: Readonly<Record<string, PracticeCounts>>;
}

type MutableCounts = { -readonly [K in keyof PracticeCounts]: number };

const MAX_CLIENTS = 1000;
const OTHERS = '(others)';

/** Counts requests in total and by client. Clients beyond the first thousand count as `(others)`. */
export class PracticeCounters {
  readonly #all = zeroCounts();
  readonly #clients = new Map<string, MutableCounts>();
  readonly #answered = new Map<ResponseOutcome, number>();
  #inFlight = 0;

  begin(client: string, kind: PracticeCountKind): void {
    this.#inFlight += 1;
    const counts = this.#of(client);
    counts.received += 1;
    counts[kind] += 1;
    this.#all.received += 1;
    this.#all[kind] += 1;
  }

  end(how: ResponseOutcome): void {
    this.#inFlight -= 1;
    this.#answered.set(how, (this.#answered.get(how) ?? 0) + 1);
  }

  stats(elapsed: number, limit: number): PracticeStats {
    return {
      elapsed,
      limit,
      ...this.#all,
      inFlight: this.#inFlight,
      answered: Object.fromEntries(this.#answered),
      byClient: Object.fromEntries([...this.#clients].map(([client, counts]) => [client, { ...counts }])),
    };
  }

  #of(client: string): MutableCounts {
    const known = this.#clients.get(client);
    if (known !== undefined) return known;
    if (this.#clients.size >= MAX_CLIENTS && client !== OTHERS) return this.#of(OTHERS);
    const counts = zeroCounts();
    this.#clients.set(client, counts);
    return counts;
  }
}

function zeroCounts(): MutableCounts {
  return { received: 0, accepted: 0, rejected: 0, errors: 0, scripted: 0 };
}
