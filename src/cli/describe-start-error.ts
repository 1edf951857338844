import { createServer } from 'node:net';
import { existsSync } from 'node:fs';
import type { Config } from '../config/schema/config-schema.ts';
import type { ConfigEnvironment } from '../config/load/substitute.ts';
import type { Address } from '../config/values/listen-address.ts';
import { formatListenAddress } from '../config/values/listen-address.ts';
import { formatOptions } from './npm-start.ts';

/** An address of the configuration that is in use. */
export interface OccupiedAddress {
  /** The setting. `listen` and `admin` are flags too. */
  readonly setting: 'listen' | 'admin' | 'telemetry';
  readonly address: Address;
}

type Addresses = Pick<Config, 'listen' | 'admin' | 'telemetry'>;

/** Why the proxy could not start, without a stack trace. For addresses in use, which ones, and what to do. */
export async function describeStartError(
  error: unknown,
  config: Addresses,
  env: ConfigEnvironment['env'],
  platform: NodeJS.Platform = process.platform,
): Promise<string> {
  if (!(error instanceof Error)) return String(error);
  const { code, syscall, address, port } = error as NodeJS.ErrnoException & { address?: string; port?: number };
  if (syscall !== 'listen') return error.message;
  // For a Unix socket, the port is −1 and the address is its path.
  const isUnixSocket = port === undefined || port < 0;
  const where = isUnixSocket ? address : `${address ?? ''}:${port}`;
  if (code === 'EADDRINUSE') {
    const occupied = await findOccupiedAddresses(config);
    if (occupied.length > 0) return describeOccupied(occupied, config, env);
    return `${where} was in use a moment ago: start again`;
  }
  if (isUnixSocket && platform === 'win32') {
    return `unix:${where} cannot be created: Windows has no Unix sockets for servers of Node; set an address such as 127.0.0.1:8080`;
  }
  // sun_path of macOS has 104 bytes, that of Linux 108, with the final NUL.
  if (isUnixSocket && (code === 'EINVAL' || code === 'ENAMETOOLONG')) {
    return `${where} cannot be created: the path of a Unix socket is at most ${platform === 'darwin' ? 103 : 107} bytes here`;
  }
  // libuv reports a missing folder of a socket as EACCES too (uv_pipe_bind).
  if (isUnixSocket && (code === 'EACCES' || code === 'ENOTDIR')) {
    return `${where} cannot be created: its folder must exist and be writable by this user`;
  }
  if (code === 'EACCES') return `${where}: permission denied; ports below 1024 need a privilege`;
  if (code === 'EADDRNOTAVAIL') return `${where} is not an address of this machine`;
  return error.message;
}

export function isAddressInUse(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
}

/** The addresses of a configuration that are in use, that of clients first. Call it only while this process listens on none. */
export async function findOccupiedAddresses({ listen, admin, telemetry }: Addresses): Promise<OccupiedAddress[]> {
  const all: OccupiedAddress[] = [
    { setting: 'listen', address: listen.address },
    ...(admin === false ? [] : [{ setting: 'admin', address: admin.listen } as const]),
    ...(telemetry === undefined ? [] : [{ setting: 'telemetry', address: telemetry } as const]),
  ];
  const occupied: OccupiedAddress[] = [];
  for (const each of all) if (await isOccupied(each.address)) occupied.push(each);
  return occupied;
}

async function describeOccupied(
  occupied: readonly OccupiedAddress[],
  config: Addresses,
  env: ConfigEnvironment['env'],
): Promise<string> {
  const names = occupied.map(({ setting, address }) => `${formatListenAddress(address)} (${setting})`);
  const flags: string[] = [];
  for (const { setting, address } of occupied) {
    const free = setting === 'telemetry' ? undefined : await findFreePort(address, config);
    if (free !== undefined) flags.push(`--${setting} ${formatListenAddress(free)}`);
  }
  const example = flags.length === 0 ? ' in the configuration' : `, such as ${formatOptions(flags.join(' '), env)}`;
  const [verb, other] = occupied.length === 1 ? ['is', 'another address'] : ['are', 'other addresses'];
  return `${names.join(' and ')} ${verb} in use, perhaps by another Tidegate: stop it, or choose ${other}${example}`;
}

const PORTS_TRIED = 20;

/** The next port that is free and that the configuration does not name; undefined for a Unix socket, or if there is none near. */
async function findFreePort(address: Address, config: Addresses): Promise<Address | undefined> {
  if (address.kind === 'unix') return undefined;
  const { listen, admin, telemetry } = config;
  const named = [listen.address, admin === false ? undefined : admin.listen, telemetry];
  for (let port = address.port + 1; port <= Math.min(65_535, address.port + PORTS_TRIED); port += 1) {
    const isNamed = named.some((other) => other?.kind === 'tcp' && other.port === port);
    if (!isNamed && !(await isOccupied({ ...address, port }))) return { ...address, port };
  }
  return undefined;
}

/** A file at the path of a Unix socket counts: a stale socket has been removed by now. */
async function isOccupied(address: Address): Promise<boolean> {
  if (address.kind === 'unix') return existsSync(address.path);
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', (error) => resolve(isAddressInUse(error)));
    server.listen({ host: address.host, port: address.port, exclusive: true }, () => {
      server.close(() => resolve(false));
    });
  });
}
