import { setTimeout as sleep } from 'node:timers/promises';
import type { Millis, Random } from '../../src/core/scalars.ts';
import { seededRandom } from '../../src/simulator/seeded-random.ts';
import type { ProbedProcess } from '../support/proxy/probed-process.ts';
import type { Relay } from '../support/relay/relay.ts';
import type { UpstreamChange } from './upstream.ts';

export interface SoakTargets {
  /** In front of the upstreams. */
  readonly relays: readonly Relay[];
  readonly gate: ProbedProcess;
  readonly change: (change: UpstreamChange) => void;
}

/** Injects a fault and removes it. */
interface Fault {
  begin(stage: SoakTargets): Promise<void> | void;
  end(stage: SoakTargets): Promise<void> | void;
}

const each = async (relays: readonly Relay[], act: (relay: Relay) => Promise<void> | void): Promise<void> => {
  await Promise.all(relays.map(async (relay) => act(relay)));
};
const heal = ({ relays }: SoakTargets): Promise<void> => each(relays, (relay) => relay.clearFaults());
const accept = ({ relays }: SoakTargets): Promise<void> => each(relays, (relay) => relay.accept());
/** A response of the practice upstream has some hundred bytes, one of the feed up to a million. */
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
        await relay.blackhole();
        relay.break('cut');
      }),
    end: accept,
  },
  'no names': {
    begin: async ({ gate, relays }) => {
      await gate.setDnsFailure('EAI_AGAIN');
      await each(relays, (relay) => relay.break('cut'));
    },
    end: ({ gate }) => gate.setDnsFailure(),
  },
  'all reset': {
    begin: ({ relays }) => each(relays, (relay) => relay.break('reset')),
    end: () => undefined,
  },
  'answers cut': {
    begin: ({ relays }) =>
      each(relays, (relay) =>
        relay.injectFaults((_, random) => ({ down: { end: { after: somewhere(random), how: broken(random) } } })),
      ),
    end: heal,
  },
  'requests cut': {
    begin: ({ relays }) =>
      each(relays, (relay) =>
        relay.injectFaults((_, random) => ({ up: { end: { after: somewhere(random), how: broken(random) } } })),
      ),
    end: heal,
  },
  crumbs: {
    begin: ({ relays }) => each(relays, (relay) => relay.injectFaults({ down: { trickle: { bytes: 50, every: 20 } } })),
    end: heal,
  },
  delay: {
    begin: ({ relays }) => each(relays, (relay) => relay.injectFaults({ up: { delay: 300 }, down: { delay: 300 } })),
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

export interface FaultRecord {
  readonly name: FaultName;
  /** Wall-clock time, as in the log. */
  readonly from: Millis;
  /** Infinity while it lasts. */
  to: Millis;
}

/** Injects one fault after another in random order, with pauses between: all of them before any is repeated. */
export class FaultInjector {
  readonly records: FaultRecord[] = [];
  readonly #targets: SoakTargets;
  readonly #random: Random;
  readonly #interval: Millis;
  #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #next: FaultName[] = [];

  /** @param interval the pause between faults, and the maximum length of most */
  constructor(targets: SoakTargets, interval: Millis, seed: number) {
    this.#targets = targets;
    this.#interval = interval;
    this.#random = seededRandom(seed);
  }

  start(): void {
    this.#stopping = new AbortController();
    this.#running = this.#run(this.#stopping.signal);
  }

  /** Resolves when the last fault has been removed. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(signal: AbortSignal): Promise<void> {
    for (;;) {
      await wait(this.#interval, signal);
      if (signal.aborted) return;
      if (this.#next.length === 0) this.#next = this.#shuffle(FAULT_NAMES);
      const name = this.#next.pop() ?? 'outage';
      const record: FaultRecord = { name, from: Date.now(), to: Number.POSITIVE_INFINITY };
      this.records.push(record);
      const fault: Fault = FAULTS[name];
      await fault.begin(this.#targets);
      await wait((0.5 + this.#random() / 2) * this.#interval * (name === 'outage' ? 2 : 1), signal);
      await fault.end(this.#targets);
      record.to = Date.now();
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
