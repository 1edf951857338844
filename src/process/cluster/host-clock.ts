import { performance } from 'node:perf_hooks';
import type { Clock } from '../../core/scalars.ts';

/** performance.now() starts at 0 in each process. Both clocks are CLOCK_MONOTONIC, so the difference is constant. */
const offset = Number(process.hrtime.bigint()) / 1e6 - performance.now();

/** A monotonic clock that is the same in all processes of this machine. */
export const hostClock: Clock = { now: () => performance.now() + offset };
