import type { Millis } from '../../core/scalars.ts';
import { hostClock } from './host-clock.ts';

/** Returns a function that schedules `call` within a time: at the earliest one requested since the last call; 0: at the end of this turn. */
export function createCoalescedTimer(call: () => void): (within: Millis) => void {
  let immediate: NodeJS.Immediate | undefined;
  let timer: NodeJS.Timeout | undefined;
  let dueAt = Number.POSITIVE_INFINITY;
  const run = (): void => {
    clearImmediate(immediate);
    clearTimeout(timer);
    immediate = undefined;
    dueAt = Number.POSITIVE_INFINITY;
    call();
  };
  return (within) => {
    if (within === 0) immediate ??= setImmediate(run);
    if (immediate !== undefined) return;
    const at = hostClock.now() + within;
    if (at >= dueAt) return;
    clearTimeout(timer);
    dueAt = at;
    timer = setTimeout(run, within).unref();
  };
}
