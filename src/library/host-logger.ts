import type { Logger } from 'pino';
import { isMapping } from '../config/load/schema-issues.ts';
import type { LogLevel } from '../telemetry/log/logger.ts';
import { createLogger } from '../telemetry/log/logger.ts';

/** A logger as Fastify has one: pino's, or any that is like it. */
export interface HostLogger {
  readonly level: string;
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

const LEVELS: readonly LogLevel[] = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

/** A logger of ours whose lines go to another's, with secrets blanked. Its level is that of the other when it is made. */
export function logInto(host: HostLogger): Logger {
  const level = LEVELS.find((known) => known === host.level) ?? 'info';
  return createLogger({ level, destination: { write: (line) => pass(line, host) } });
}

/** They are lines of JSON by now. */
function pass(line: string, host: HostLogger): void {
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
