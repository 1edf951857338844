import type { Config } from '../../config/schema/config-schema.ts';
import { DEFAULT_CONNECTIONS } from '../../config/schema/config-schema.ts';
import { capConnectionsOfWorkers, openFileLimit } from '../../config/compile/capacities.ts';
import type { Millis } from '../../core/scalars.ts';
import type { CertificateExpiry } from '../../telemetry/metrics/certificate-metrics.ts';
import type { DoctorFinding } from './doctor-finding.ts';
import { ok, problem, skipped, warning } from './doctor-finding.ts';

/** Fewer than an ordinary gateway needs. */
const FEW_CONNECTIONS = 1024;
/** Of the limit. Above it, a burst of connections soon reaches the limit. */
const MANY_IN_USE = 0.8;

/** The open files of the Tidegate that runs, as its metrics have them. */
export interface OpenFiles {
  readonly limit: number;
  readonly inUse: number;
}

/** Whether the limit on open files allows the configured connections. @param running undefined: the limit of this process counts */
export function checkOpenFiles(config: Config, running: OpenFiles | undefined): DoctorFinding {
  const place = running === undefined ? 'open files of this process' : 'open files of the Tidegate that runs';
  const limit = running?.limit ?? openFileLimit();
  if (limit === undefined) return skipped('limits', place, 'this system does not show the limit');
  const wanted = config.limits.connections;
  const connections = capConnectionsOfWorkers(config, limit);
  const isFew = connections < FEW_CONNECTIONS;
  if (connections < wanted && (isFew || wanted !== DEFAULT_CONNECTIONS)) {
    const meaning = `the limit is ${limit}: it allows ${connections} connections of clients, not the ${wanted} of limits.connections`;
    return (isFew ? problem : warning)('limits', place, meaning, RAISE_LIMIT);
  }
  if (running !== undefined && running.inUse > MANY_IN_USE * limit) {
    return warning('limits', place, `${running.inUse} of ${limit} are in use`, RAISE_LIMIT);
  }
  return ok('limits', place, `${limit}, enough for ${connections} connections of clients`);
}

const RAISE_LIMIT =
  'Raise it for the service: LimitNOFILE=65536 in its unit of systemd, ulimits in compose, ulimit -n in a shell. A service may have another limit than this shell.';

const DAY: Millis = 24 * 3_600_000;
/** Twice the time of the first warning in the log. */
const EXPIRES_SOON: Millis = 14 * DAY;

/** Certificates of the configuration that have expired, or soon will. @param now epoch ms */
export function checkCertificateExpiry(expiries: readonly CertificateExpiry[], now: Millis): DoctorFinding[] {
  return expiries.map(({ setting, expiresAt }) => {
    const date = new Date(expiresAt).toISOString();
    const remedy =
      'Replace the certificate and its key: the listener uses new files at once, upstreams after a reload.';
    if (expiresAt <= now) return problem('certificates', setting, `expired on ${date}`, remedy);
    if (expiresAt - now < EXPIRES_SOON) return warning('certificates', setting, `expires on ${date}`, remedy);
    return ok('certificates', setting, `valid until ${date}`);
  });
}
