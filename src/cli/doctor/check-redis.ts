import type { RedisProbe } from '../../process/probes/probe-redis.ts';
import type { RedisStateConfig } from '../../process/sharing/redis-location.ts';
import type { DoctorFinding } from './doctor-finding.ts';
import { ok, problem, skipped, warning } from './doctor-finding.ts';

const ALONE = 'this process keeps limits on its own, and writes with idempotency keys follow onStoreLost';
const OLDEST = [6, 2] as const;

/** What the proxy would find at Redis. @param place of `state.url` */
export function describeRedis(probe: RedisProbe, { timeout }: RedisStateConfig, place: string): DoctorFinding[] {
  if (probe.kind === 'failed') {
    const { code, message } = probe;
    return [problem('redis', place, `Redis cannot be used (${message}): ${ALONE}`, remedyOf(code, message))];
  }
  const { info, took, denied, publishDenied } = probe;
  const findings: DoctorFinding[] = [];
  if (denied !== undefined) {
    findings.push(problem('redis', place, `Redis refuses what is needed (${denied}): ${ALONE}`, remedyOf('', denied)));
  }
  if (publishDenied !== undefined) {
    const meaning = `Redis refuses to publish (${publishDenied}): cuts and holds of other replicas arrive late`;
    findings.push(warning('redis', place, meaning, remedyOf('', publishDenied)));
  }
  if (took > timeout) {
    findings.push(
      warning(
        'redis',
        place,
        `a response took ${Math.round(took)} ms, longer than state.timeout (${timeout} ms): ${ALONE} meanwhile`,
        'Place Redis nearer to this machine, look for slow commands (SLOWLOG GET), or raise state.timeout.',
      ),
    );
  }
  findings.push(describeVersion(info, place), ...describeMemory(info, place));
  return findings;
}

function describeVersion(info: ReadonlyMap<string, string>, place: string): DoctorFinding {
  const version = info.get('redis_version');
  if (version === undefined) {
    return skipped('redis', place, 'connected; its version and memory are unknown, because this user may not use INFO');
  }
  const [major = 0, minor = 0] = version.split('.').map(Number);
  // Valkey reports the version of Redis that it is compatible with.
  if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) {
    return ok('redis', place, `connected; compatible with Redis ${version}`);
  }
  return problem('redis', place, `its version is ${version}`, `Install Redis ${OLDEST.join('.')} or later, or Valkey.`);
}

/** What Redis does when its memory is full. */
function describeMemory(info: ReadonlyMap<string, string>, place: string): DoctorFinding[] {
  const policy = info.get('maxmemory_policy');
  if (policy === undefined || policy === 'noeviction' || info.get('maxmemory') === '0') return [];
  return [
    warning(
      'redis',
      place,
      `maxmemory-policy ${policy}: when its memory is full, Redis removes keys, those of idempotency included`,
      'Set maxmemory-policy noeviction, and maxmemory above what the keys need (docs/replicas.md).',
    ),
  ];
}

/** By the start of the message, as Redis words it. */
const REMEDIES: readonly (readonly [RegExp, string])[] = [
  [/^WRONGPASS|invalid password/, 'Correct state.username and state.password, or the user and password of state.url.'],
  [/^NOAUTH/, 'Set state.password, or the password of state.url: this Redis requires one.'],
  [/without any password configured/, 'Remove the password from the configuration, or set one in Redis.'],
  [/^NOPERM/, 'Give the user the permissions that docs/replicas.md lists: ACL SETUSER NAME ~PREFIX:* &PREFIX:* …'],
  [/^READONLY/, 'Set the address of the master, or that of the Sentinels: this is a replica.'],
  [/^OOM/, 'Raise maxmemory of Redis, or remove other data from it.'],
  [/^MISCONF/, 'Make room on the disk of Redis: it accepts no writes, because it cannot save.'],
  [/^LOADING/, 'Wait until Redis has loaded its data.'],
  [
    /^no node can be reached/,
    'Start the nodes of the cluster, or correct their hosts and ports in state.url: redis-cli -u URL PING shows the cause.',
  ],
  [
    /sentinels are unreachable/,
    'Start the Sentinels, or correct their hosts, ports and the name of the master in state.url.',
  ],
  [
    /certificate|self.signed|altnames/i,
    'Set state.tls.ca to the certificate of its authority, and the host to a name of its certificate.',
  ],
];

const REMEDIES_BY_CODE: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'Start Redis, or correct the host and port of state.url.',
  ENOTFOUND: 'Correct the host name in state.url: getent hosts NAME shows what the resolver answers.',
  EAI_AGAIN: 'Check that the servers of /etc/resolv.conf answer: getent hosts NAME.',
  ETIMEDOUT: 'Check the firewalls between this machine and Redis, and that Redis responds: redis-cli PING.',
};

function remedyOf(code: string, message: string): string {
  const byMessage = REMEDIES.find(([pattern]) => pattern.test(message))?.[1];
  return (
    byMessage ??
    REMEDIES_BY_CODE[code] ??
    'Make Redis reachable from this machine, and check state.url: redis-cli -u URL PING.'
  );
}
