import { type Bindings, type ChildLoggerOptions, type DestinationStream, type Logger, pino } from 'pino';
import type { Millis } from '../../core/scalars.ts';
import { redact } from './redact.ts';

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';

export interface LogOptions {
  readonly level: LogLevel;
  readonly destination: DestinationStream;
}

/**
 * A JSON logger: each line has `level` as a word and `time` in ISO 8601; process id and host name are left to the log
 * collector. Secrets are redacted in all fields (see `redact`), but not in the message itself.
 * Lines are written asynchronously: call `flushLogger` before the process exits.
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

/** pino 10.4.0 drops `formatters.bindings` in a child (lib/proto.js), so the fields of a child are redacted when it is created. */
function redactBindings(logger: Logger): void {
  // oxlint-disable-next-line typescript/unbound-method -- called below, as a method of the logger whose child it makes
  const makeChild: (this: Logger, bindings: Bindings, options?: ChildLoggerOptions) => Logger = logger.child;
  Object.assign(logger, {
    child(this: Logger, bindings: Bindings, options?: ChildLoggerOptions): Logger {
      return makeChild.call(this, redact(bindings), options);
    },
  });
}

/** Resolves when all lines so far are written or cannot be, after `timeout` at the latest: the reader may be stuck. */
export function flushLogger(logger: Logger, timeout: Millis = 1000): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, timeout);
    logger.flush(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
