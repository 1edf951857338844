import { performance } from 'node:perf_hooks';
import type { Clock } from '../../core/scalars.ts';
import { SuspensionClock } from '../suspension-clock.ts';

/** In the environment of a worker: by how much the clock of the primary was ahead of the monotonic one when it started the worker. */
const SUSPENDED = 'TIDEGATE_WORKER_SUSPENDED_MS';

/** performance.now() starts at 0 in each process. Both clocks are CLOCK_MONOTONIC, so the difference is constant. */
const offset = Number(process.hrtime.bigint()) / 1e6 - performance.now();
const clock = new SuspensionClock(Number(process.env[SUSPENDED] ?? 0));

/** A monotonic clock that is the same in all processes of this machine; after a suspension, within 20 ms. */
export const hostClock: Clock = { now: () => clock.now() + offset };

/** For a worker that is started now. */
export function workerClockEnvironment(): Readonly<Record<string, string>> {
  return { [SUSPENDED]: String(clock.suspended) };
}
