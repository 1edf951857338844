import { type Bindings, type ChildLoggerOptions, type DestinationStream, type Logger, pino } from 'pino';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';
import { redact } from './redact.ts';

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';

export interface LogOptions {
  readonly level: LogLevel;
  readonly destination: DestinationStream;
}

/**
 * A JSON logger: a line has `level` as a word and `time` in ISO 8601; process id and host name are left to those who collect
 * the lines. Secrets are blanked in whatever is logged (see `redact`), except in the message itself.
 * Lines are written behind the caller's back; whoever ends the process calls `flush` first.
 */
export function createLogger({ level, destination }: LogOptions): Logger {
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

/** Resolves when all lines so far are written, or cannot be; after `within` in any case, as nobody may be reading. */
export function flush(logger: Logger, within: Millis = 1000): Promise<void> {
  return new Promise((resolve) => {
    const late = setTimeout(resolve, within);
    logger.flush(() => {
      clearTimeout(late);
      resolve();
    });
  });
}
