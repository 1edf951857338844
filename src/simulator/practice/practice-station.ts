import { performance } from 'node:perf_hooks';
import type { Millis } from '../../core/scalars.ts';
import type { StationClock } from '../service/station-timer.ts';
import { StationTimer } from '../service/station-timer.ts';
import type { UpstreamModel, UpstreamSpec } from '../upstream/upstream-model.ts';

/**
 * Runs the station of an upstream in real time; undefined if it has none.
 * @param startedAt of the upstream's time, on the clock of `performance.now`
 * @param applySteps sets the number of workers that holds now
 */
export function runStation(
  { station }: UpstreamModel['model'],
  { steps = [] }: UpstreamSpec,
  startedAt: Millis,
  applySteps: (now: Millis) => void,
): StationTimer | undefined {
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
  return timer;
}
