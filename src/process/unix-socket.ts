import { chmodSync, lstatSync, unlinkSync } from 'node:fs';
import { connect } from 'node:net';
import type { Address } from '../config/values/listen-address.ts';
import type { Config } from '../config/schema/config-schema.ts';

/**
 * What is at the path of a Unix socket. `stale`: no process listens there any more, so the start removes it. `used`: a process
 * listens, or may listen. `other`: it is no socket, and is never removed.
 * @throws an error of node:fs if the folder cannot be entered
 */
export type UnixSocketState = 'none' | 'stale' | 'used' | 'other';

export async function examineUnixSocket(path: string): Promise<UnixSocketState> {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return 'none';
  // Linux refuses a connection to a regular file as it does to a dead socket.
  if (!stats.isSocket()) return 'other';
  return (await refusesConnections(path)) ? 'stale' : 'used';
}

/**
 * Removes the socket file of a killed process, which would keep the next one from listening. A socket that accepts
 * connections is left in place, so that listening fails with EADDRINUSE.
 */
export async function removeStaleSocket(address: Address): Promise<void> {
  if (address.kind !== 'unix') return;
  if ((await examineUnixSocket(address.path)) === 'stale') unlinkSync(address.path);
}

function refusesConnections(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    socket.once('connect', () => {
      socket.destroy();
      resolve(false);
    });
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'));
  });
}

/** @param permissions of the socket file, in octal; undefined leaves them unchanged */
export function setSocketPermissions(address: Address, permissions: string | undefined): void {
  if (address.kind === 'unix' && permissions !== undefined) chmodSync(address.path, Number.parseInt(permissions, 8));
}

/** All addresses that a configuration listens on. */
export function listenAddresses({
  listen,
  admin,
  telemetry,
}: Pick<Config, 'listen' | 'admin' | 'telemetry'>): Address[] {
  return [listen.address, ...(admin === false ? [] : [admin.listen]), ...(telemetry === undefined ? [] : [telemetry])];
}
