/** Signals of the terminal and of service managers. */
import { isatty } from 'node:tty';
import type { Options } from 'close-with-grace';
import type { Logger } from 'pino';
import type { Millis } from '../core/scalars.ts';

/** Added to the time of the drain, for the last log lines. After that the process ends in any case. */
const EXIT_GRACE: Millis = 2000;

/** A signal to the whole process group arrives twice under npm, which forwards its own copy. */
const DUPLICATE_SIGNAL_WINDOW: Millis = 500;

/** Those that close-with-grace would handle too. */
const POSIX_STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGQUIT', 'SIGUSR2', 'SIGHUP'] as const;

/** Signals that stop a program. For a service, SIGHUP has another meaning too (`classifyHangup`). Only Windows has SIGBREAK: Ctrl-Break. */
export const STOP_SIGNALS = [...POSIX_STOP_SIGNALS, 'SIGBREAK'] as const;

export interface StopHandlers {
  /** Called at the first signal. */
  readonly onFirst: (signal: NodeJS.Signals) => void;
  /** Called at each later one, except for duplicates of the first. */
  readonly onSecond: (signal: NodeJS.Signals) => void;
}

/**
 * Handles the signals that stop a program. The listeners stay installed: without one, the kernel's default applies, and a signal
 * that comes twice ends the process. close-with-grace 2.5.0 does without for a moment, and knows no duplicates.
 */
export function watchStopSignals(handlers: StopHandlers, signals: readonly NodeJS.Signals[] = STOP_SIGNALS): void {
  const stop = new StopRequests(handlers);
  for (const signal of signals) process.on(signal, stop.onSignal);
}

/**
 * Returns what SIGHUP means: a service reads its configuration again; a process of a terminal loses that terminal. Windows sends it
 * only when a console closes, and ends the process about 10 s later: https://nodejs.org/api/process.html#signal-events
 */
export function classifyHangup(
  terminal: { readonly atStart: boolean; readonly now: boolean },
  platform: NodeJS.Platform = process.platform,
): 'reload' | 'stop' {
  if (platform === 'win32') return 'stop';
  return !terminal.atStart || terminal.now ? 'reload' : 'stop';
}

/** Handles the signals of a service. */
export function watchServiceSignals(
  logger: Logger,
  actions: {
    readonly reload: () => Promise<void>;
    readonly drain: (signal: NodeJS.Signals) => void;
    readonly exit: () => void;
  },
): void {
  const atStart = isatty(0);
  const stop = new StopRequests({
    onFirst: actions.drain,
    onSecond: (signal) => {
      logger.warn({ signal }, 'second signal: exits at once, requests in flight are cut');
      actions.exit();
    },
  });
  for (const signal of STOP_SIGNALS) if (signal !== 'SIGHUP') process.on(signal, stop.onSignal);
  process.on('SIGHUP', (signal) => {
    if (classifyHangup({ atStart, now: isatty(0) }) === 'reload') void actions.reload();
    // Several parties report a lost terminal, at any time. None of them asks the process to end sooner.
    else if (!stop.isRequested) stop.onSignal(signal);
  });
}

/**
 * A service that gets SIGHUP while it starts reads its configuration again afterwards, instead of ending.
 * @returns `end` returns whether one has arrived. `watchServiceSignals` has to handle SIGHUP by then
 */
export function deferReloads(): { readonly end: () => boolean } {
  let isRequested = false;
  const onHangup = (): void => void (isRequested = true);
  // On Windows, a closed console ends the process.
  if (!isatty(0) && process.platform !== 'win32') process.on('SIGHUP', onHangup);
  return {
    end: () => {
      process.off('SIGHUP', onHangup);
      return isRequested;
    },
  };
}

class StopRequests {
  readonly #handlers: StopHandlers;
  #first: { readonly signal: NodeJS.Signals; readonly at: Millis } | undefined;

  constructor(handlers: StopHandlers) {
    this.#handlers = handlers;
  }

  get isRequested(): boolean {
    return this.#first !== undefined;
  }

  readonly onSignal = (received: NodeJS.Signals): void => {
    const signal = received === 'SIGBREAK' ? 'SIGINT' : received; // Ctrl-Break of Windows is another Ctrl-C
    const now = performance.now();
    const first = this.#first;
    if (first === undefined) {
      this.#first = { signal, at: now };
      this.#handlers.onFirst(signal);
    } else if (signal !== first.signal || now - first.at >= DUPLICATE_SIGNAL_WINDOW) this.#handlers.onSecond(signal);
  };
}

/** Options of close-with-grace for a drain that takes so long. `watchServiceSignals` handles the signals. */
export function closeOptions(drain: Millis): Options {
  return { delay: drain + EXIT_GRACE, logger: false, skip: [...POSIX_STOP_SIGNALS] };
}
