import { performance } from 'node:perf_hooks';
import type { Clock } from '../../core/exchange/attempt-outcome.ts';

/** performance.now() begins with each process; both go by CLOCK_MONOTONIC, so that the distance stays what it is. */
const offset = Number(process.hrtime.bigint()) / 1e6 - performance.now();

/** A monotonic clock that all processes of this machine read alike. */
export const hostClock: Clock = { now: () => performance.now() + offset };
