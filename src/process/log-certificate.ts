import type { Logger } from 'pino';

/** A certificate of ours was reread. @param problem why the one before is shown on */
export function logCertificate(logger: Logger, problem: Error | undefined): void {
  if (problem === undefined) return logger.info('another certificate is shown to clients: its files have changed');
  const told = 'the certificate has changed and cannot be used: the one before is shown on';
  logger.warn({ problem: problem.message }, told);
}
