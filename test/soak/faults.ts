import { setTimeout as sleep } from 'node:timers/promises';
import type { Millis, Random } from '../../src/core/exchange/attempt-outcome.ts';
import { seededRandom } from '../../src/simulator/seeded-random.ts';
import type { Probed } from '../support/probed.ts';
import type { Relay } from '../support/relay.ts';
import type { Change } from './upstream.ts';

export interface Stage {
  /** In front of the upstreams. */
  readonly relays: readonly Relay[];
  readonly gate: Probed;
  readonly change: (change: Change) => void;
}

/** What goes wrong, and how it is made good again. */
interface Fault {
  begin(stage: Stage): Promise<void> | void;
  end(stage: Stage): Promise<void> | void;
}

const each = async (relays: readonly Relay[], act: (relay: Relay) => Promise<void> | void): Promise<void> => {
  await Promise.all(relays.map(async (relay) => act(relay)));
};
const heal = ({ relays }: Stage): Promise<void> => each(relays, (relay) => relay.heal());
const accept = ({ relays }: Stage): Promise<void> => each(relays, (relay) => relay.accept());
/** An answer of the practice upstream is some hundred bytes, one of the feed up to a million. */
const somewhere = (random: Random): readonly [number, number] => [0, random() < 0.5 ? 400 : 200_000];
const broken = (random: Random): 'cut' | 'reset' => (random() < 0.5 ? 'cut' : 'reset');

const FAULTS = {
  outage: {
    begin: ({ relays }) =>
      each(relays, async (relay) => {
        await relay.refuse();
        relay.break('reset');
      }),
    end: accept,
  },
  swallowed: {
    begin: ({ relays }) =>
      each(relays, async (relay) => {
        await relay.swallow();
        relay.break('cut');
      }),
    end: accept,
  },
  'no names': {
    begin: async ({ gate, relays }) => {
      await gate.lookups('EAI_AGAIN');
      await each(relays, (relay) => relay.break('cut'));
    },
    end: ({ gate }) => gate.lookups(),
  },
  'all reset': {
    begin: ({ relays }) => each(relays, (relay) => relay.break('reset')),
    end: () => undefined,
  },
  'answers cut': {
    begin: ({ relays }) =>
      each(relays, (relay) =>
        relay.spoil((_, random) => ({ down: { end: { after: somewhere(random), how: broken(random) } } })),
      ),
    end: heal,
  },
  'requests cut': {
    begin: ({ relays }) =>
      each(relays, (relay) =>
        relay.spoil((_, random) => ({ up: { end: { after: somewhere(random), how: broken(random) } } })),
      ),
    end: heal,
  },
  crumbs: {
    begin: ({ relays }) => each(relays, (relay) => relay.spoil({ down: { trickle: { bytes: 50, every: 20 } } })),
    end: heal,
  },
  delay: {
    begin: ({ relays }) => each(relays, (relay) => relay.spoil({ up: { delay: 300 }, down: { delay: 300 } })),
    end: heal,
  },
  stall: {
    begin: ({ relays }) =>
      each(relays, (relay) => {
        for (const link of relay.links) link.pause('down');
      }),
    end: ({ relays }) =>
      each(relays, (relay) => {
        for (const link of relay.links) link.resume('down');
      }),
  },
  errors: {
    begin: ({ change }) => {
      change({
        practice: { errors: [0.2, 0.2].map((probability, i) => ({ probability, status: 500 + 3 * i })) },
        failing: 0.3,
      });
    },
    end: ({ change }) => change({ practice: { errors: [] }, failing: 0 }),
  },
  'lost answers': {
    begin: ({ change }) => change({ practice: { afterCharge: { reset: 0.2, hang: 0.1, error: 0.2 } } }),
    end: ({ change }) => change({ practice: { afterCharge: {} } }),
  },
  'lower limit': {
    begin: ({ change }) => {
      change({ practice: { limit: { kind: 'token-bucket', rate: 50, burst: 10 }, hints: 'none' } });
    },
    end: ({ change }) => {
      change({ practice: { limit: { kind: 'token-bucket', rate: 150, burst: 30 }, hints: 'retry-after' } });
    },
  },
} as const satisfies Record<string, Fault>;

export type FaultName = keyof typeof FAULTS;
export const FAULT_NAMES = Object.keys(FAULTS) as FaultName[];

export interface Happened {
  readonly name: FaultName;
  /** On the wall clock, as the log tells time. */
  readonly from: Millis;
  /** Infinity while it lasts. */
  to: Millis;
}

/** One fault after the other, with rests between them, in an order left to chance: all of them before any comes again. */
export class Faults {
  readonly happened: Happened[] = [];
  readonly #stage: Stage;
  readonly #random: Random;
  readonly #beat: Millis;
  #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #next: FaultName[] = [];

  /** @param beat a rest, and the longest that most faults last */
  constructor(stage: Stage, beat: Millis, seed: number) {
    this.#stage = stage;
    this.#beat = beat;
    this.#random = seededRandom(seed);
  }

  start(): void {
    this.#stopping = new AbortController();
    this.#running = this.#run(this.#stopping.signal);
  }

  /** Resolves when all is well. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(signal: AbortSignal): Promise<void> {
    for (;;) {
      await wait(this.#beat, signal);
      if (signal.aborted) return;
      if (this.#next.length === 0) this.#next = this.#shuffle(FAULT_NAMES);
      const name = this.#next.pop() ?? 'outage';
      const happened: Happened = { name, from: Date.now(), to: Number.POSITIVE_INFINITY };
      this.happened.push(happened);
      const fault: Fault = FAULTS[name];
      await fault.begin(this.#stage);
      await wait((0.5 + this.#random() / 2) * this.#beat * (name === 'outage' ? 2 : 1), signal);
      await fault.end(this.#stage);
      happened.to = Date.now();
    }
  }

  #shuffle(names: readonly FaultName[]): FaultName[] {
    return names
      .map((name) => ({ name, at: this.#random() }))
      .toSorted((a, b) => a.at - b.at)
      .map(({ name }) => name);
  }
}

function wait(ms: Millis, signal: AbortSignal): Promise<void> {
  return sleep(ms, undefined, { signal }).catch(() => undefined);
}
