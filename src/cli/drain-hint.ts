import { humanizeDuration } from '../telemetry/format-values.ts';
import type { Millis } from '../core/scalars.ts';

/** A drain that is shorter needs no hint. Longer than the time in which a repeated Ctrl-C is ignored. */
const HINT_DELAY: Millis = 1000;

/**
 * On a terminal, prints how to end a drain that has lasted a second after Ctrl-C. To be called once a handler drains the process:
 * any listener keeps the signal from ending it. This one comes before that handler, which sets aside what is left (signals.ts).
 * @param timeout of the drain
 */
export function announceSecondCtrlC(timeout: Millis): void {
  const { stdin, stderr } = process;
  if (!stdin.isTTY || !stderr.isTTY) return;
  process.prependOnceListener('SIGINT', () => {
    setTimeout(() => {
      stderr.write(
        `Requests in flight have at most ${humanizeDuration(timeout)} to end (drain.timeout). Ctrl-C ends them at once.\n`,
      );
    }, HINT_DELAY).unref();
  });
}
