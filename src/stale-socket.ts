import { unlinkSync } from 'node:fs';
import { connect } from 'node:net';
import type { Address } from './config/address.ts';

/**
 * A process that was killed leaves its Unix socket behind, and the next one could not listen. A socket that nobody
 * answers is removed; one that somebody answers is left, for listening to fail with EADDRINUSE.
 */
export async function removeStaleSocket(address: Address): Promise<void> {
  if (address.kind === 'unix' && (await isRefused(address.path))) unlinkSync(address.path);
}

/** ECONNREFUSED is told of a socket alone: of another file it is ENOTSOCK, of none ENOENT. */
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
