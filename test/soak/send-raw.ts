import type { Millis } from '../../src/core/scalars.ts';
import { connectTo } from './proxy-connection.ts';

const TIMEOUT: Millis = 30_000;

/** Sends bytes and returns all data until the proxy closes; undefined if it does not close in time. */
export function sendRaw({ url, ca }: { url: string; ca: string }, bytes: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connectTo(url, ca);
    const timeout = setTimeout(() => {
      resolve(undefined);
      socket.destroy();
    }, TIMEOUT);
    let text = '';
    socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      clearTimeout(timeout);
      resolve(text);
    });
    socket.write(Buffer.from(bytes, 'latin1'));
  });
}
