import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import { hostClock } from './host-clock.ts';

/** Calls at the end of this turn, or after a few milliseconds: whichever of all that was asked for is first. */
export function callInTime(call: () => void): (within: Millis) => void {
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
