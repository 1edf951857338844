import { accessSync, constants } from 'node:fs';
import { createServer } from 'node:net';
import { dirname } from 'node:path';
import type { Config } from '../../config/schema/config-schema.ts';
import type { Address } from '../../config/values/listen-address.ts';
import { formatListenAddress } from '../../config/values/listen-address.ts';
import type { DoctorFinding } from './doctor-finding.ts';
import { ok, problem } from './doctor-finding.ts';

/** Whether this user can listen at each address. @param isRunning a Tidegate that uses them runs already */
export async function checkAddresses(config: Config, isRunning: boolean): Promise<DoctorFinding[]> {
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
    const code = isRunning ? undefined : await findListenError(address);
    if (code !== undefined) findings.push(problem('addresses', place, ...describe(code, address)));
    else findings.push(ok('addresses', place, isRunning ? 'in use by the Tidegate that runs' : 'free'));
  }
  return findings;
}

/** The code of the error; undefined if this user can listen there. */
async function findListenError(address: Address): Promise<string | undefined> {
  if (address.kind === 'unix') return findFolderError(dirname(address.path));
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen({ host: address.host, port: address.port, exclusive: true }, () => {
      server.close(() => resolve(undefined));
    });
  });
}

/** A socket that an earlier process has left is no error: the start removes it. */
function findFolderError(folder: string): string | undefined {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : String(error);
  }
}

function describe(code: string, address: Address): readonly [meaning: string, remedy: string] {
  const port = address.kind === 'tcp' ? address.port : 0;
  if (address.kind === 'unix') {
    const folder = dirname(address.path);
    return [
      `${folder} cannot take a socket (${code})`,
      `Create ${folder}, and let the user of the service write there.`,
    ];
  }
  switch (code) {
    case 'EADDRINUSE':
      return [
        'another program listens there, so the start would fail',
        `Stop it, or set another address. ss -ltnp 'sport = :${port}' shows the program.`,
      ];
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
