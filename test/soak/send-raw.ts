import type { Millis } from '../../src/core/exchange/attempt-outcome.ts';
import { connectTo } from './reach.ts';

const BAD_PATIENCE: Millis = 30_000;

/** All that came until the other side closed; undefined when it did not for long. */
export function sendRaw({ url, ca }: { url: string; ca: string }, bytes: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connectTo(url, ca);
    const patience = setTimeout(() => {
      resolve(undefined);
      socket.destroy();
    }, BAD_PATIENCE);
    let text = '';
    socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      clearTimeout(patience);
      resolve(text);
    });
    socket.write(Buffer.from(bytes, 'latin1'));
  });
}
