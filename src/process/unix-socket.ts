import { chmodSync, lstatSync, unlinkSync } from 'node:fs';
import { connect } from 'node:net';
import type { Address } from '../config/values/listen-address.ts';
import type { Config } from '../config/schema/config-schema.ts';

/**
 * Removes the socket file of a killed process, which would keep the next one from listening. A socket that accepts
 * connections is left in place, so that listening fails with EADDRINUSE.
 */
export async function removeStaleSocket(address: Address): Promise<void> {
  if (address.kind !== 'unix' || !isSocket(address.path)) return;
  if (await refusesConnections(address.path)) unlinkSync(address.path);
}

/** Linux refuses a connection to a regular file as it does to a dead socket: only a socket may be removed. */
function isSocket(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSocket() === true;
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
