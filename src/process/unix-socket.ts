import { chmodSync, lstatSync, unlinkSync } from 'node:fs';
import { connect } from 'node:net';
import type { Address } from '../config/values/listen-address.ts';
import type { Config } from '../config/schema/config-schema.ts';

/**
 * A process that was killed leaves its Unix socket behind, and the next one could not listen. A socket that nobody
 * answers is removed; one that somebody answers is left, for listening to fail with EADDRINUSE.
 */
export async function removeStaleSocket(address: Address): Promise<void> {
  if (address.kind !== 'unix' || !isSocket(address.path)) return;
  if (await isRefused(address.path)) unlinkSync(address.path);
}

/** Linux refuses a connection to a regular file just as to a dead socket: never remove what is not ours. */
function isSocket(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSocket() === true;
}

function isRefused(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    socket.once('connect', () => {
      socket.destroy();
      resolve(false);
    });
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'));
  });
}

/** @param permissions of the socket's file, in octal; undefined leaves them as they are */
export function permit(address: Address, permissions: string | undefined): void {
  if (address.kind === 'unix' && permissions !== undefined) chmodSync(address.path, Number.parseInt(permissions, 8));
}

/** All that a configuration listens at. */
export function addressesOf({ listen, admin, telemetry }: Pick<Config, 'listen' | 'admin' | 'telemetry'>): Address[] {
  return [listen.address, ...(admin === false ? [] : [admin.listen]), ...(telemetry === undefined ? [] : [telemetry])];
}
