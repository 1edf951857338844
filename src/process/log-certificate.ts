import type { Logger } from 'pino';

/** Logs that the server certificate was reloaded. @param problem why the previous one stays in use */
export function logCertificate(logger: Logger, problem: Error | undefined): void {
  if (problem === undefined) return logger.info('certificate reloaded: its files have changed');
  const text = 'new certificate cannot be used: the previous one stays in use';
  logger.warn({ problem: problem.message }, text);
}
