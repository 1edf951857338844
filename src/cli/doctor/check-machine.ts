import type { Config } from '../../config/schema/config-schema.ts';
import { DEFAULT_CONNECTIONS } from '../../config/schema/config-schema.ts';
import { capByOpenFiles } from '../../config/compile/capacities.ts';
import type { Millis } from '../../core/scalars.ts';
import type { CertificateExpiry } from '../../telemetry/metrics/certificate-metrics.ts';
import type { DoctorFinding } from './doctor-finding.ts';
import { ok, problem, skipped, warning } from './doctor-finding.ts';

const PLACE_OF_FILES = 'open files of this process';
/** Fewer than an ordinary gateway needs. */
const FEW_CONNECTIONS = 1024;

/** Whether the limit on open files allows the configured connections. It is that of the shell, unless the service runs doctor. */
export function checkOpenFiles(config: Config): DoctorFinding {
  const wanted = config.limits.connections;
  const capped = capByOpenFiles(config, wanted);
  if (capped === undefined) return skipped('limits', PLACE_OF_FILES, 'this system does not show the limit');
  const { openFiles, connections } = capped;
  if (connections >= wanted || (wanted === DEFAULT_CONNECTIONS && connections >= FEW_CONNECTIONS)) {
    return ok('limits', PLACE_OF_FILES, `${openFiles}, enough for ${connections} connections of clients`);
  }
  return (connections < FEW_CONNECTIONS ? problem : warning)(
    'limits',
    PLACE_OF_FILES,
    `the limit is ${openFiles}: it allows ${connections} connections of clients, not the ${wanted} of limits.connections`,
    'Raise it for the service: LimitNOFILE=65536 in its unit of systemd, ulimits in compose, ulimit -n in a shell. A service may have another limit than this shell.',
  );
}

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
