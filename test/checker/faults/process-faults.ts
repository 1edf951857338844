/** Faults of Tidegate's own processes. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Millis, Random } from '../../../src/core/scalars.ts';
import { pickOf } from '../../support/oracle/topology.ts';
import type { Fault } from '../fault-injector.ts';
import type { FaultLog } from '../fault-record.ts';
import type { GateProcess } from '../gate-process.ts';
import { signal, until } from '../gate-process.ts';

type Gates = readonly GateProcess[];

export function killed(name: string, gates: Gates): Fault {
  return {
    name,
    inject: async (random) => {
      const gate = pickOf(gates, random);
      await gate.kill('all');
      await gate.start();
    },
  };
}

export function workerKilled(gate: GateProcess): Fault {
  return {
    name: 'worker killed',
    inject: async (random) => {
      const pid = pickOf(gate.workerPids, random);
      signal(pid, 'SIGKILL');
      await until(() => !gate.workerPids.includes(pid), 'the end of a worker');
      await gate.allServing();
    },
  };
}

/** Its workers finish their requests, while the next process waits for them. */
export function primaryKilled(gate: GateProcess): Fault {
  return {
    name: 'primary killed',
    inject: async () => {
      await gate.kill('primary');
      await gate.start();
    },
  };
}

export interface StopOptions {
  readonly pidOf: (random: Random) => number;
  /** The shortest and the longest stop. */
  readonly lasts: readonly [Millis, Millis];
  readonly isLong?: boolean;
}

export function stopped(name: string, faults: FaultLog, { pidOf, lasts, isLong = false }: StopOptions): Fault {
  const [shortest, longest] = lasts;
  return {
    name,
    isLong,
    inject: async (random) => {
      const pid = pidOf(random);
      const stop = { from: performance.now(), to: Number.POSITIVE_INFINITY, late: 0 };
      signal(pid, 'SIGSTOP');
      try {
        await sleep(shortest + (longest - shortest) * random());
      } finally {
        stop.to = performance.now();
        faults.stops.push(stop);
        signal(pid, 'SIGCONT');
      }
    },
  };
}

/** @param draw returns another configuration */
export function reloaded(gates: Gates, draw: (place: number, random: Random) => string): Fault {
  return {
    name: 'reload',
    inject: async (random) => {
      const place = Math.floor(gates.length * random());
      await gates[place]?.reload(draw(place, random));
    },
  };
}

export function drained(gates: Gates): Fault {
  return {
    name: 'drain',
    inject: async (random) => {
      const gate = pickOf(gates, random);
      const code = await gate.drain();
      if (code !== 0) throw new Error(`it ended with ${code} after SIGTERM`);
      await gate.start();
    },
  };
}

/** In seconds, ahead of this machine's clock or behind it. */
const CLOCKS = [0, 5, -5, 3600, -3600, 7 * 86_400];
/** Until libfaketime reads its file again (1 s), and Tidegate notices (2 s). */
const CLOCK_NOTICED: Millis = 3500;

/** @param clocks sets the clocks of one process each */
export function clockSet(clocks: readonly ((seconds: number) => void)[]): Fault {
  return {
    name: 'clock set',
    inject: async (random) => {
      pickOf(clocks, random)(pickOf(CLOCKS, random));
      await sleep(CLOCK_NOTICED);
    },
  };
}
