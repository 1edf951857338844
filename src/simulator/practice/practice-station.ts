import { performance } from 'node:perf_hooks';
import type { Millis } from '../../core/scalars.ts';
import type { StationClock } from '../service/station-timer.ts';
import { StationTimer } from '../service/station-timer.ts';
import type { AcceptedTimes, UpstreamModel, UpstreamSpec } from '../upstream/upstream-model.ts';
import type { WaitLog } from './wait-log.ts';

/** A station in real time. */
export interface PracticeStation {
  /** Returns what starts the work of a request, and calls back once, when it has ended. */
  workOf(times: AcceptedTimes): (onDone: () => void) => void;
}

/** Where the station of an upstream runs. */
export interface StationRun {
  /** Of the upstream's time, on the clock of `performance.now`. */
  readonly startedAt: Millis;
  readonly waits: WaitLog;
}

/**
 * Runs the station of an upstream in real time; undefined if it has none.
 * @param applySteps sets the number of workers that holds now
 */
export function runStation(
  { station }: UpstreamModel['model'],
  { steps = [] }: UpstreamSpec,
  { startedAt, waits }: StationRun,
  applySteps: (now: Millis) => void,
): PracticeStation | undefined {
  if (station === undefined) return undefined;
  const now = (): Millis => performance.now() - startedAt;
  const wakeAt = (at: Millis, run: () => void): void => {
    // Node's timers may be early by less than a millisecond.
    const check = (): void => (now() < at ? wakeAt(at, run) : run());
    setTimeout(check, Math.max(0, at - now())).unref();
  };
  const clock: StationClock = { now, wakeAt };
  const timer = new StationTimer(station, clock, applySteps);
  for (const { at } of steps) if (at > now()) wakeAt(at, timer.wake);
  timer.wake();
  return {
    workOf:
      ({ latency, poolLatency = 0 }) =>
      (onDone) => {
        const onServed = (at: Millis): void => {
          waits.add(at, Math.max(0, at - arrivedAt - latency - poolLatency));
          onDone();
        };
        const arrivedAt = timer.arrive({ work: latency, poolWork: poolLatency, onServed });
      },
  };
}
