import type { Answered } from './execute-plan.ts';

/** What came of requests: every one is counted under one of the last four. */
export interface Counts {
  readonly received: number;
  /** The limit let them pass and nothing failed. */
  readonly accepted: number;
  readonly rejected: number;
  /** The limit let them pass and they failed at random, or the upstream was down. */
  readonly errors: number;
  /** Answered by a script of their own. */
  readonly scripted: number;
}

export type Kind = Exclude<keyof Counts, 'received'>;

export interface PracticeStats extends Counts {
  /** Milliseconds since the start or the last reset: what steps, outages and bursts are told in. */
  readonly elapsed: number;
  /** The limit in force, in the unit of its kind. */
  readonly limit: number;
  readonly inFlight: number;
  /** How they were answered: statuses, and `reset`, `hang`, `cut`, `gone` (the client had left). */
  readonly answered: Readonly<Record<string, number>>;
  readonly byClient: Readonly<Record<string, Counts>>;
}

type Counting = { -readonly [K in keyof Counts]: number };

const CLIENTS = 1000;
const OTHERS = '(others)';

/** Counts requests, in all and by client; from the thousandth client on, as `(others)`. */
export class Tally {
  readonly #all = zero();
  readonly #clients = new Map<string, Counting>();
  readonly #answered = new Map<Answered, number>();
  #inFlight = 0;

  begin(client: string, kind: Kind): void {
    this.#inFlight += 1;
    const counts = this.#of(client);
    counts.received += 1;
    counts[kind] += 1;
    this.#all.received += 1;
    this.#all[kind] += 1;
  }

  end(how: Answered): void {
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

  #of(client: string): Counting {
    const known = this.#clients.get(client);
    if (known !== undefined) return known;
    if (this.#clients.size >= CLIENTS && client !== OTHERS) return this.#of(OTHERS);
    const counts = zero();
    this.#clients.set(client, counts);
    return counts;
  }
}

function zero(): Counting {
  return { received: 0, accepted: 0, rejected: 0, errors: 0, scripted: 0 };
}
