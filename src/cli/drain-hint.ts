import { humanizeDuration } from '../telemetry/format-values.ts';
import type { Millis } from '../core/scalars.ts';

/** A drain that is shorter needs no hint. Longer than the time in which duplicates of a signal are ignored (signals.ts). */
const HINT_DELAY: Millis = 1000;

/**
 * On a terminal, prints how to end a drain that has lasted a second after Ctrl-C. To be called once a handler drains the process:
 * any listener keeps the signal from ending it.
 * @param timeout of the drain
 */
export function announceSecondCtrlC(timeout: Millis): void {
  const { stdin, stderr } = process;
  if (!stdin.isTTY || !stderr.isTTY) return;
  process.once('SIGINT', () => {
    setTimeout(() => {
      stderr.write(
        `Requests in flight have at most ${humanizeDuration(timeout)} to end (drain.timeout). Ctrl-C ends them at once.\n`,
      );
    }, HINT_DELAY).unref();
  });
}
