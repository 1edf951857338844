import type { Duplex } from 'node:stream';
import type { Millis } from '../../core/exchange/attempt-outcome.ts';

/** Bytes that have gone through a tunnel. */
export interface Carried {
  toUpstream: number;
  toClient: number;
}

/** How long what is left may take to be written when the other side has gone. */
const LINGER: Millis = 30_000;

/**
 * Passes bytes both ways between a client and an upstream that have agreed on another protocol, as fast as the slower
 * side reads. A side that ends is told so to the other, which may go on; a side that breaks off breaks the other. No
 * limit of time is set.
 * @param carried counted up as bytes go
 * @param onOver called once, when both sides are closed
 */
export function openTunnel(client: Duplex, upstream: Duplex, carried: Carried, onOver: () => void): void {
  let open = 2;
  const onClose = (): void => {
    open -= 1;
    if (open === 0) onOver();
  };
  client.on('data', (chunk: Buffer) => {
    carried.toUpstream += chunk.length;
  });
  upstream.on('data', (chunk: Buffer) => {
    carried.toClient += chunk.length;
  });
  for (const [from, to] of [
    [client, upstream],
    [upstream, client],
  ] as const) {
    from.allowHalfOpen = true;
    from.pipe(to);
    from.on('error', () => undefined); // told by `close`
    from.on('close', () => {
      if (from.readableEnded) finish(to);
      else to.destroy();
      onClose();
    });
  }
}

/** Nobody is left to hear it: what it has still to be told is written, and it is closed. */
function finish(side: Duplex): void {
  if (side.writableFinished) side.destroy();
  if (side.destroyed) return;
  const close = (): void => void side.destroy();
  const timer = setTimeout(close, LINGER);
  side.once('close', () => clearTimeout(timer));
  side.once('finish', close);
  side.end();
}
