/** Signals of the terminal and of service managers. */
import { isatty } from 'node:tty';
import type { Options } from 'close-with-grace';
import type { Logger } from 'pino';
import type { Millis } from '../core/scalars.ts';

/** Added to the time of the drain, for the last log lines. After that the process ends in any case. */
const EXIT_GRACE: Millis = 2000;

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
 * Keeps Node's handler of SIGINT and SIGTERM installed from now on. close-with-grace 2.5.0 removes its listeners before it adds
 * those for a second signal. Without a listener, the kernel's default applies, and a signal that comes twice ends the process.
 */
export function keepSignalHandlers(): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => undefined);
}

/** Options of close-with-grace for a drain that takes so long. `watchHangUps` handles SIGHUP. */
export function closeOptions(drain: Millis, logger: Logger): Options {
  return {
    delay: drain + EXIT_GRACE,
    logger: false,
    skip: ['SIGHUP'],
    onSecondSignal: (signal) => logger.warn({ signal }, 'second signal: exits at once, requests in flight are cut'),
  };
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
