import { spawn } from 'node:child_process';
import type { Logger } from 'pino';
import type { Millis } from '../../core/scalars.ts';

type Variables = Readonly<Record<string, string | undefined>>;

/** Signs of life for each period of the watchdog, so that the loss of one has no effect. */
const PINGS_PER_PERIOD = 3;
/** To flush the log and exit after a drain. */
const EXIT_TIME: Millis = 5000;

/**
 * Reports the state of this process to systemd, as sd_notify(3) does, by the program systemd-notify: Node has no Unix datagram
 * sockets. The program is a child, so a unit needs `NotifyAccess=all`.
 */
export class SystemdNotifier {
  readonly #env: Variables;
  readonly #logger: Logger;
  #hasFailed = false;

  /** Only for a process with `NOTIFY_SOCKET`. */
  constructor(env: Variables, logger: Logger) {
    this.#env = env;
    this.#logger = logger;
  }

  /** Reports that this process is ready, and sends signs of life from now on, as long as its event loop runs. */
  reportReady(): void {
    this.#notify(['READY=1']);
    const period = watchdogPeriod(this.#env);
    if (period !== undefined) setInterval(() => this.#notify(['WATCHDOG=1']), period / PINGS_PER_PERIOD).unref();
  }

  /** Reports that this process has begun to stop, and that it takes at most `within`. */
  reportStopping(within: Millis): void {
    this.#notify(['STOPPING=1', `EXTEND_TIMEOUT_USEC=${Math.ceil(1000 * (within + EXIT_TIME))}`]);
  }

  #notify(assignments: readonly string[]): void {
    try {
      const child = spawn('systemd-notify', assignments, { stdio: 'ignore' });
      child.on('error', (error) => this.#onFailure(error.message));
      child.on('exit', (code) => {
        if (code !== null && code !== 0) this.#onFailure(`systemd-notify exited with ${code}`);
      });
    } catch (error) {
      // Some errors are thrown, such as ENOMEM and E2BIG. They must not end the process.
      this.#onFailure(error instanceof Error ? error.message : String(error));
    }
  }

  #onFailure(why: string): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    this.#logger.error({ why }, 'systemd cannot be notified: it may take this process for hung and restart it');
  }
}

/** Undefined if the unit has no `WatchdogSec`, or if the watchdog is that of another process. */
function watchdogPeriod({ WATCHDOG_USEC, WATCHDOG_PID }: Variables): Millis | undefined {
  if (WATCHDOG_PID !== undefined && WATCHDOG_PID !== String(process.pid)) return undefined;
  const micros = Number(WATCHDOG_USEC);
  return Number.isFinite(micros) && micros > 0 ? micros / 1000 : undefined;
}
