/** Signals of the terminal and of service managers. */
import { isatty } from 'node:tty';
import type { Millis } from '../core/scalars.ts';

const DUPLICATE_SIGNAL_WINDOW: Millis = 500;

/**
 * Handles SIGHUP, which has two meanings: a service reads its configuration again; a process of a terminal loses that terminal.
 * @param reload called at each SIGHUP of the first kind
 * @returns resolves at the first SIGHUP of the second kind
 */
export function watchHangUps(reload: () => Promise<void>): Promise<void> {
  const hadTerminal = isatty(0);
  return new Promise((resolve) => {
    process.on('SIGHUP', () => {
      if (hadTerminal && !isatty(0)) resolve();
      else void reload();
    });
  });
}

/**
 * Ignores SIGINT for half a second. Under npm one Ctrl-C arrives twice within a millisecond, from the terminal and from npm.
 * close-with-grace 2.5.0 ends the process at any second signal, and its listeners for that are registered by now.
 */
export function ignoreDuplicateSigint(): void {
  const exitListeners = process.listeners('SIGINT');
  const ignore = (): void => undefined;
  process.on('SIGINT', ignore);
  for (const listener of exitListeners) process.off('SIGINT', listener);
  setTimeout(() => {
    for (const listener of exitListeners) process.on('SIGINT', listener);
    process.off('SIGINT', ignore);
  }, DUPLICATE_SIGNAL_WINDOW).unref();
}
