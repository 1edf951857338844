import { accessSync, constants } from 'node:fs';
import { createServer } from 'node:net';
import { dirname } from 'node:path';
import type { Config } from '../../config/schema/config-schema.ts';
import type { Address } from '../../config/values/listen-address.ts';
import { formatListenAddress } from '../../config/values/listen-address.ts';
import { examineUnixSocket } from '../../process/unix-socket.ts';
import type { RunningPresence } from './check-running.ts';
import type { DoctorFinding } from './doctor-finding.ts';
import { ok, problem, warning } from './doctor-finding.ts';

/** Whether this user can listen at each address. Listens there for a moment. @param presence of a Tidegate at the admin address */
export async function checkAddresses(config: Config, presence: RunningPresence): Promise<DoctorFinding[]> {
  const { listen, admin, telemetry } = config;
  const addresses: readonly (readonly [setting: string, address: Address | undefined])[] = [
    ['listen', listen.address],
    ['admin', admin === false ? undefined : admin.listen],
    ['telemetry', telemetry],
  ];
  const findings: DoctorFinding[] = [];
  for (const [setting, address] of addresses) {
    if (address === undefined) continue;
    const place = `${setting} (${formatListenAddress(address)})`;
    const code = await findListenError(address);
    if (code === undefined) findings.push(ok('addresses', place, 'free'));
    else if (code !== 'EADDRINUSE') findings.push(problem('addresses', place, ...describe(code, address)));
    else findings.push(describeUse(place, address, presence));
  }
  return findings;
}

/** A Tidegate that runs explains that an address is in use. Which process uses it is not known. */
function describeUse(place: string, address: Address, presence: RunningPresence): DoctorFinding {
  const command = formatListenerQuery(address);
  switch (presence) {
    case 'running':
      return ok('addresses', place, 'in use, while a Tidegate runs');
    case 'absent': {
      const meaning = 'another program listens there, so the start would fail';
      return problem('addresses', place, meaning, `Stop it, or set another address. ${command} shows the program.`);
    }
    case 'unknown': {
      const meaning =
        'in use, and it is not known whether a Tidegate runs: if it is another program, the start would fail';
      return warning('addresses', place, meaning, `${command} shows the program. If it is not Tidegate, stop it.`);
    }
  }
}

/** The shell command that shows which process listens at an address. */
export function formatListenerQuery(address: Address, platform: NodeJS.Platform = process.platform): string {
  if (platform === 'win32') return address.kind === 'unix' ? 'netstat -ano' : `netstat -ano | findstr :${address.port}`;
  if (platform === 'darwin') {
    return address.kind === 'unix' ? `lsof ${address.path}` : `lsof -nP -iTCP:${address.port} -sTCP:LISTEN`;
  }
  return address.kind === 'unix' ? `ss -lxp | grep ${address.path}` : `ss -ltnp 'sport = :${address.port}'`;
}

/** The code of the error; undefined if this user can listen there. */
async function findListenError(address: Address): Promise<string | undefined> {
  if (address.kind === 'unix') return findSocketError(address.path);
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen({ host: address.host, port: address.port, exclusive: true }, () => {
      server.close(() => resolve(undefined));
    });
  });
}

/** A socket that an earlier process has left is no error: the start removes it. */
async function findSocketError(path: string): Promise<string | undefined> {
  try {
    const state = await examineUnixSocket(path);
    if (state === 'used') return 'EADDRINUSE';
    if (state === 'other') return NO_SOCKET;
    accessSync(dirname(path), constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : String(error);
  }
}

/** In place of a code of the system. */
const NO_SOCKET = 'not a socket';

function describe(code: string, address: Address): readonly [meaning: string, remedy: string] {
  if (code === NO_SOCKET) {
    return ['a file that is no socket is there, so the start would fail', 'Move the file, or set another path.'];
  }
  if (address.kind === 'unix') {
    const folder = dirname(address.path);
    return [
      `${folder} cannot take a socket (${code})`,
      `Create ${folder}, and let the user of the service write there.`,
    ];
  }
  switch (code) {
    case 'EACCES':
      return [
        'permission denied: ports below 1024 need a privilege',
        'Set a port from 1024, or AmbientCapabilities=CAP_NET_BIND_SERVICE in the unit of systemd.',
      ];
    case 'EADDRNOTAVAIL':
      return ['not an address of this machine', 'Set an address of this machine (ip address lists them), or 0.0.0.0.'];
    default:
      return [`listening fails (${code})`, 'Set another address.'];
  }
}
