import type { Config } from '../../config/schema/config-schema.ts';
import { pathKey } from '../../config/load/source-map.ts';
import type { ClockSample } from '../../process/probes/probe-clock.ts';
import { probeServerClock } from '../../process/probes/probe-clock.ts';
import type { EndpointProbe } from '../../process/probes/probe-upstreams.ts';
import { probeUpstreams } from '../../process/probes/probe-upstreams.ts';
import type { ValidSettings } from './check-config.ts';
import { placeOfSetting } from './check-config.ts';
import type { DoctorFinding } from './doctor-finding.ts';
import { ok, problem, skipped } from './doctor-finding.ts';

/** The clock of a server, and how the report calls the server. */
export interface NamedClockSample extends ClockSample {
  readonly name: string;
}

/** Opens a connection to each endpoint, and reads the clock of those that accept one. */
export async function checkUpstreams(
  settings: ValidSettings,
): Promise<{ readonly findings: readonly DoctorFinding[]; readonly clocks: readonly NamedClockSample[] }> {
  const { config, substituted } = settings;
  const probes = await probeUpstreams(config);
  if (probes.length === 0) return { findings: [skipped('upstreams', 'upstreams', 'none to connect to')], clocks: [] };
  // The value of a variable may contain a credential.
  const nameOf = ({ path, endpoint }: EndpointProbe): string => substituted.get(pathKey(path)) ?? endpoint;
  const clocks = await Promise.all(
    probes.map(async (probe) => {
      const sample = probe.problem === undefined ? await readClock(config, probe) : undefined;
      return sample === undefined ? [] : [{ ...sample, name: nameOf(probe) }];
    }),
  );
  return { findings: probes.map((probe) => describeProbe(settings, probe, nameOf(probe))), clocks: clocks.flat() };
}

async function readClock(
  { upstreams }: Config,
  { upstream, endpoint }: EndpointProbe,
): Promise<ClockSample | undefined> {
  const settings = upstreams[upstream];
  return settings && probeServerClock(endpoint, { timeout: settings.connectTimeout, tls: settings.tls });
}

function describeProbe(settings: ValidSettings, { path, problem: found }: EndpointProbe, name: string): DoctorFinding {
  const place = placeOfSetting(settings, path);
  if (found === undefined) return ok('upstreams', place, `${name} accepts connections`);
  const { code, text } = found;
  return problem('upstreams', place, `no connection to ${name}: ${text}`, remedyOf(code));
}

const TRUST = 'Set tls.ca to the certificate of the authority, if the upstream is meant to have one of its own.';

const REMEDIES: Readonly<Record<string, string>> = {
  ENOTFOUND: 'Correct the host name, or repair the resolver of this machine: getent hosts NAME shows what it answers.',
  EAI_AGAIN: 'Check that the servers of /etc/resolv.conf answer: getent hosts NAME.',
  ECONNREFUSED: 'Start the upstream, or correct its host and port.',
  ECONNRESET: 'Check that the port is that of the upstream, and that no firewall between them resets connections.',
  EHOSTUNREACH: 'Check the route and the firewalls between this machine and the upstream.',
  ENETUNREACH:
    'Check the route of this machine: ip route. If the name has an IPv6 address, this machine may have no IPv6.',
  ETIMEDOUT: 'Check the firewalls between this machine and the upstream. If it is only slow, raise connectTimeout.',
  ENOENT: 'Start the upstream, or correct the path of its socket.',
  EACCES: 'Let the user of the service write to the socket.',
  ERR_SSL_WRONG_VERSION_NUMBER: 'Write http:// in place of https://, or the port at which the upstream speaks TLS.',
  CERT_HAS_EXPIRED:
    'Ask the operator of the upstream for a new certificate. Check also the clock of this machine: date -u.',
  CERT_NOT_YET_VALID: 'Check the clock of this machine: date -u.',
  ERR_TLS_CERT_ALTNAME_INVALID: 'Write a name of the certificate as the host of the url, or set tls.serverName.',
  DEPTH_ZERO_SELF_SIGNED_CERT: TRUST,
  SELF_SIGNED_CERT_IN_CHAIN: TRUST,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: TRUST,
  UNABLE_TO_GET_ISSUER_CERT: TRUST,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: TRUST,
};

function remedyOf(code: string): string {
  if (Object.hasOwn(REMEDIES, code)) return REMEDIES[code] ?? '';
  if (code.startsWith('ERR_SSL_') || code === 'EPROTO') {
    return 'Compare the settings of tls with what the upstream requires: version, client certificate, server name.';
  }
  return 'Correct the url, or make the upstream reachable from this machine.';
}
