import { isatty } from 'node:tty';
import { type Bindings, type ChildLoggerOptions, type DestinationStream, type Logger, pino } from 'pino';
import { redact } from './redact.ts';

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';

export interface LogOptions {
  readonly level: LogLevel;
  /** Standard output unless given. */
  readonly destination?: DestinationStream;
}

const STDOUT = 1;
/** Written in pieces of this size, or after FLUSH_EVERY, whichever is first: a system call for each line costs more than the line. */
const PIECE = 4096;
const FLUSH_EVERY = 200;
/** Lines beyond this are dropped while nobody reads our output: a stuck log must not fill the memory of a proxy. */
const MAX_PENDING = 16 * 1024 * 1024;

/**
 * A JSON logger: a line has `level` as a word and `time` in ISO 8601; process id and host name are left to those who collect
 * the lines. Secrets are blanked in whatever is logged (see `redact`), except in the message itself.
 * Lines are written behind the caller's back; whoever ends the process calls `flush` first.
 */
export function createLogger({ level, destination = openStandardOutput() }: LogOptions): Logger {
  const logger = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: redact },
      // Errors have been serialised by `redact`; pino's serializer would take the result for an error again.
      serializers: { err: (error: unknown) => error },
    },
    destination,
  );
  redactBindings(logger);
  return logger;
}

/** pino 10.4.0 drops `formatters.bindings` in a child (lib/proto.js), so that the fields of children are blanked as they are made. */
function redactBindings(logger: Logger): void {
  // oxlint-disable-next-line typescript/unbound-method -- called below, as a method of the logger whose child it makes
  const makeChild: (this: Logger, bindings: Bindings, options?: ChildLoggerOptions) => Logger = logger.child;
  Object.assign(logger, {
    child(this: Logger, bindings: Bindings, options?: ChildLoggerOptions): Logger {
      return makeChild.call(this, redact(bindings), options);
    },
  });
}

/** Resolves when all lines so far are written, or cannot be; not while nobody reads a pipe that is full: set a deadline. */
export function flush(logger: Logger): Promise<void> {
  return new Promise((resolve) => {
    logger.flush(() => resolve());
  });
}

function openStandardOutput(): DestinationStream {
  // Somebody who watches wants to see a line when it happens.
  if (isatty(STDOUT)) return pino.destination({ dest: STDOUT, sync: true });
  const output = pino.destination({
    dest: STDOUT,
    sync: false,
    minLength: PIECE,
    maxLength: MAX_PENDING,
    periodicFlush: FLUSH_EVERY,
  });
  // A full disk or a closed pipe costs lines, not requests.
  output.on('error', () => {});
  return output;
}
