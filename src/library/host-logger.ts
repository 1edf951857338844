import type { Logger } from 'pino';
import { isMapping } from '../config/values/plain-object.ts';
import type { LogLevel } from '../telemetry/log/logger.ts';
import { createLogger } from '../telemetry/log/logger.ts';

/** The logger of the application: pino, or a compatible one. */
export interface HostLogger {
  readonly level: string;
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

const LOG_LEVELS: readonly LogLevel[] = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

/** Creates a logger that masks secrets and forwards its lines to the host's logger. The level is that of the host at creation. */
export function createForwardingLogger(host: HostLogger): Logger {
  const level = LOG_LEVELS.find((known) => known === host.level) ?? 'info';
  return createLogger({ level, destination: { write: (line) => forwardLine(line, host) } });
}

/** Log lines arrive here as JSON. */
function forwardLine(line: string, host: HostLogger): void {
  const parsed: unknown = JSON.parse(line);
  if (!isMapping(parsed)) return;
  const { level, msg, time: _, ...fields } = { level: '', msg: '', time: '', ...parsed };
  switch (level) {
    case 'trace':
    case 'debug':
      return host.debug(fields, msg);
    case 'warn':
      return host.warn(fields, msg);
    case 'error':
    case 'fatal':
      return host.error(fields, msg);
    default:
      return host.info(fields, msg);
  }
}
