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

/** An address of all interfaces is reached at the loopback one. */
function reachable(address: Address): Address {
  if (address.kind === 'unix') return address;
  const host = { '0.0.0.0': '127.0.0.1', '::': '::1' }[address.host];
  return host === undefined ? address : { ...address, host };
}

export interface RunningReport {
  /** A Tidegate answers at the admin address, or requires a token there. */
  readonly isRunning: boolean;
  readonly findings: readonly DoctorFinding[];
  /** Undefined if none runs, or if its system does not show them. */
  readonly openFiles?: OpenFiles | undefined;
}

/** Queries the Tidegate that runs, if one does. @param version of this command */
export async function checkRunning({ admin, token }: RunningTarget, version: string): Promise<RunningReport> {
  if (admin === undefined) {
    const meaning = 'the admin port is disabled, so a Tidegate that runs cannot be queried';
    return { isRunning: false, findings: [skipped('running', 'admin', meaning)] };
  }
  const connection = AdminConnection.open({ admin, token });
  if ('kind' in connection) {
    return { isRunning: false, findings: [problem('running', '--admin', connection.message, 'Correct the address.')] };
  }
  try {
    const call = { method: 'GET', path: '/api/status', subject: 'status', problems: [] } as const;
    const outcome = await connection.send(call);
    if (outcome.kind === 'answered' && isStatus(outcome.payload)) {
      const findings = describeStatus(outcome.payload, admin, version);
      return { isRunning: true, findings, openFiles: await readOpenFiles(connection, outcome.payload) };
    }
    if (outcome.kind === 'unusable' && outcome.cause === 'unreachable') {
      return { isRunning: false, findings: [skipped('running', admin, 'no Tidegate answers there')] };
    }
    if (outcome.kind === 'unusable' && outcome.cause === 'unauthorized') {
      const remedy = 'Set TIDEGATE_ADMIN_TOKEN to its admin.token.';
      return {
        isRunning: true,
        findings: [warning('running', admin, 'a Tidegate answers, and requires its token', remedy)],
      };
    }
    const remedy = 'Set admin to the address of the admin port, or stop the other program.';
    const meaning = 'what answers there is not the admin port of this version of Tidegate';
    return { isRunning: false, findings: [problem('running', admin, meaning, remedy)] };
  } finally {
    await connection.close();
  }
}

/** Of one process: the metrics have the sum of a primary and its workers, which have the same limit. */
async function readOpenFiles(connection: AdminConnection, { workers }: ProcessStatus): Promise<OpenFiles | undefined> {
  const processes = workers > 1 ? workers + 1 : 1;
  const call = { method: 'GET', path: '/metrics', subject: 'metrics', problems: [], asText: true } as const;
  const outcome = await connection.send({ ...call, maxBytes: MAX_METRICS_BYTES });
  if (outcome.kind !== 'answered') return undefined;
  const valueOf = (name: string): number =>
    Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(String(outcome.payload))?.[1]) / processes;
  const files = { limit: Math.floor(valueOf('process_max_fds')), inUse: Math.ceil(valueOf('process_open_fds')) };
  return Number.isFinite(files.limit) && Number.isFinite(files.inUse) ? files : undefined;
}

/** Checks what the report needs: the process may be of another version. */
function isStatus(payload: unknown): payload is ProcessStatus {
  return (
    payload instanceof Object &&
    ['config', 'store'].every((name) => Reflect.get(payload, name) instanceof Object) &&
    'version' in payload &&
    'upstreams' in payload &&
    Array.isArray(payload.upstreams)
  );
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
