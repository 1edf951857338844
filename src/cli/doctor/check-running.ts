import type { ProcessStatus, UpstreamStatus } from '../../admin/page/api-types.ts';
import type { Config } from '../../config/schema/config-schema.ts';
import type { Address } from '../../config/values/listen-address.ts';
import { formatListenAddress, isLoopback } from '../../config/values/listen-address.ts';
import { AdminConnection } from '../admin-request.ts';
import type { OpenFiles } from './check-machine.ts';
import type { DoctorFinding } from './doctor-finding.ts';
import { ok, problem, skipped, warning } from './doctor-finding.ts';

/** That of thousands of series. */
const MAX_METRICS_BYTES = 16 * 1024 ** 2;

export interface RunningTarget {
  /** As `--admin` of the other commands; undefined if the admin port is disabled. */
  readonly admin: string | undefined;
  readonly token: string | undefined;
}

/** Where a Tidegate with this configuration can be queried. The token of the configuration is sent only where reading needs one. */
export function runningTarget({ admin }: Pick<Config, 'admin'>, token: string | undefined): RunningTarget {
  if (admin === false) return { admin: undefined, token };
  const { listen } = admin;
  return {
    admin: formatListenAddress(reachable(listen)),
    token: token ?? (isLoopback(listen) ? undefined : admin.token),
  };
}

/** Reads need no token on a loopback address, so the first request has none: another program may listen there. */
const STATUS = { method: 'GET', path: '/api/status', subject: 'status', problems: [] } as const;

/** An address of all interfaces is reached at the loopback one. */
function reachable(address: Address): Address {
  if (address.kind === 'unix') return address;
  const host = { '0.0.0.0': '127.0.0.1', '::': '::1' }[address.host];
  return host === undefined ? address : { ...address, host };
}

/**
 * `running`: a Tidegate answers at the admin address, or requires a token there. `absent`: no Tidegate listens there. `unknown`: the
 * admin port is disabled, or there is no response.
 */
export type RunningPresence = 'running' | 'absent' | 'unknown';

export interface RunningReport {
  readonly presence: RunningPresence;
  readonly findings: readonly DoctorFinding[];
  /** Undefined if none runs, or if its system does not show them. */
  readonly openFiles?: OpenFiles | undefined;
}

/** Queries the Tidegate that runs, if one does. @param version of this command */
export async function checkRunning({ admin, token }: RunningTarget, version: string): Promise<RunningReport> {
  if (admin === undefined) {
    const meaning = 'the admin port is disabled, so a Tidegate that runs cannot be queried';
    return { presence: 'unknown', findings: [skipped('running', 'admin', meaning)] };
  }
  const connection = AdminConnection.open({ admin, token });
  if ('kind' in connection) {
    return {
      presence: 'unknown',
      findings: [problem('running', '--admin', connection.message, 'Correct the address.')],
    };
  }
  try {
    const anonymous = await connection.send({ ...STATUS, isAnonymous: true });
    const needsToken = anonymous.kind === 'unusable' && anonymous.cause === 'unauthorized' && token !== undefined;
    const outcome = needsToken ? await connection.send(STATUS) : anonymous;
    if (outcome.kind === 'answered' && isStatus(outcome.payload)) {
      const findings = describeStatus(outcome.payload, admin, version);
      const openFiles = await readOpenFiles(connection, outcome.payload, !needsToken);
      return { presence: 'running', findings, openFiles };
    }
    if (outcome.kind === 'unusable' && outcome.cause === 'unreachable') {
      return describeUnreachable(admin, outcome.code);
    }
    if (outcome.kind === 'unusable' && outcome.cause === 'unauthorized') {
      const remedy = 'Set TIDEGATE_ADMIN_TOKEN to its admin.token.';
      return {
        presence: 'running',
        findings: [warning('running', admin, 'a Tidegate answers, and requires its token', remedy)],
      };
    }
    const remedy = 'Set admin to the address of the admin port, or stop the other program.';
    const meaning = 'what answers there is not the admin port of this version of Tidegate';
    return { presence: 'absent', findings: [problem('running', admin, meaning, remedy)] };
  } finally {
    await connection.close();
  }
}

function describeUnreachable(admin: string, code: string): RunningReport {
  switch (code) {
    case 'ECONNREFUSED':
    case 'ENOENT':
      return { presence: 'absent', findings: [skipped('running', admin, 'no Tidegate answers there')] };
    case 'EACCES':
    case 'EPERM': {
      const meaning = `this user may not connect there (${code}), so a Tidegate that runs cannot be queried`;
      return { presence: 'unknown', findings: [skipped('running', admin, meaning)] };
    }
    default: {
      const cause = code === 'no response' ? '' : ` (${code})`;
      const meaning = `there is no response${cause}: a Tidegate that runs may hang, or another program listens there`;
      const remedy = 'Look at the last lines of its log. If it hangs, restart it (docs/runbooks.md).';
      return { presence: 'unknown', findings: [warning('running', admin, meaning, remedy)] };
    }
  }
}

/** Of one process: the metrics have the sum of a primary and the workers that serve, which have the same limit. */
async function readOpenFiles(
  connection: AdminConnection,
  { workers }: ProcessStatus,
  isAnonymous: boolean,
): Promise<OpenFiles | undefined> {
  const call = { method: 'GET', path: '/metrics', subject: 'metrics', problems: [], asText: true } as const;
  const outcome = await connection.send({ ...call, isAnonymous, maxBytes: MAX_METRICS_BYTES });
  if (outcome.kind !== 'answered') return undefined;
  const valueOf = (name: string): number =>
    Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(String(outcome.payload))?.[1]);
  const processes = workers > 1 ? valueOf('tidegate_workers') + 1 : 1;
  const limit = Math.floor(valueOf('process_max_fds') / processes);
  const files = { limit, inUse: Math.ceil(valueOf('process_open_fds') / processes) };
  return Number.isFinite(files.limit) && Number.isFinite(files.inUse) ? files : undefined;
}

/** Checks what the report needs: the process may be of another version. */
function isStatus(payload: unknown): payload is ProcessStatus {
  return (
    payload instanceof Object &&
    ['config', 'store'].every((name) => Reflect.get(payload, name) instanceof Object) &&
    'version' in payload &&
    'upstreams' in payload &&
    Array.isArray(payload.upstreams) &&
    payload.upstreams.every(isUpstreamStatus)
  );
}

function isUpstreamStatus(row: unknown): row is UpstreamStatus {
  if (!(row instanceof Object && 'name' in row && 'endpoints' in row)) return false;
  const { name, endpoints } = row;
  return typeof name === 'string' && Array.isArray(endpoints) && endpoints.every((each) => each instanceof Object);
}

function describeStatus(status: ProcessStatus, admin: string, version: string): DoctorFinding[] {
  const { config, store, phase } = status;
  const findings: DoctorFinding[] = [
    ok('running', admin, `Tidegate ${status.version}, ${phase}, since ${status.startedAt}`),
  ];
  if (status.version !== version) {
    const meaning = `version ${status.version} runs, and ${version} is installed`;
    findings.push(warning('running', admin, meaning, 'Restart the service, so that it runs the installed version.'));
  }
  if (config.lastReload?.ok === false) {
    const meaning = `the last reload failed, so the earlier configuration is in effect: ${config.lastReload.problem ?? ''}`;
    findings.push(
      problem('running', admin, meaning, 'Correct the file; some settings need a restart (docs/reload.md).'),
    );
  }
  if (store.degraded) {
    const meaning = `the shared store does not respond (${store.problem ?? 'no cause known'}): each process keeps limits on its own`;
    findings.push(problem('running', admin, meaning, 'See the findings about Redis, and docs/runbooks.md.'));
  }
  return [...findings, ...status.upstreams.flatMap((upstream) => describeUpstream(upstream, admin))];
}

function describeUpstream(
  { name, state, blockedBy, blockedCause, endpoints }: UpstreamStatus,
  admin: string,
): DoctorFinding[] {
  const place = `${admin} upstream ${name}`;
  const findings: DoctorFinding[] = [];
  if (state === 'blocked' && blockedBy === 'operator') {
    const meaning = 'an operator has blocked it: its requests are refused';
    findings.push(
      warning(
        'running',
        place,
        meaning,
        `Unblock it when that is over: the page, or POST /api/upstreams/${name}/unblock.`,
      ),
    );
  } else if (state === 'blocked') {
    const meaning = `it is blocked (${blockedCause ?? 'unknown cause'}): requests wait or are refused`;
    findings.push(
      problem('running', place, meaning, 'docs/runbooks.md describes each cause; tidegate top shows the state.'),
    );
  }
  for (const { endpoint, healthy, failure } of endpoints) {
    if (healthy) continue;
    const meaning = `endpoint ${endpoint} is ejected: ${failure?.text ?? 'it fails its checks'}`;
    findings.push(warning('running', place, meaning, 'Repair the endpoint; it is re-admitted after a trial request.'));
  }
  return findings;
}
