import type { Duplex } from 'node:stream';
import type { Millis } from '../../core/scalars.ts';

/** Bytes transferred through a tunnel. */
export interface TunnelBytes {
  toUpstream: number;
  toClient: number;
}

/** How long the remaining bytes may take to be written after the other side has closed. */
const DRAIN_TIMEOUT: Millis = 30_000;

/**
 * Copies bytes both ways between a client and an upstream that have changed to another protocol, as fast as the slower side reads.
 * When one side ends, the other is ended for writing and may continue to send; when one side breaks, the other is closed.
 * @param bytes incremented as bytes are transferred
 * @param halfOpenIdle once one side has ended, both are closed after this time without a byte from the other. Nothing shows that a
 * side is gone once it has ended: its socket is not read any more
 * @param onClosed called once both sides are closed
 */
export function openTunnel(
  client: Duplex,
  upstream: Duplex,
  bytes: TunnelBytes,
  halfOpenIdle: Millis,
  onClosed: () => void,
): void {
  let open = 2;
  const onClose = (): void => {
    open -= 1;
    if (open === 0) onClosed();
  };
  client.on('data', (chunk: Buffer) => {
    bytes.toUpstream += chunk.length;
  });
  upstream.on('data', (chunk: Buffer) => {
    bytes.toClient += chunk.length;
  });
  for (const [from, to] of [
    [client, upstream],
    [upstream, client],
  ] as const) {
    from.allowHalfOpen = true;
    from.pipe(to);
    from.once('end', () => closeIfIdle(to, from, halfOpenIdle));
    from.on('error', () => undefined); // `close` follows
    from.on('close', () => {
      if (from.readableEnded) endSide(to);
      else to.destroy();
      onClose();
    });
  }
}

/** Closes a tunnel of which one side has ended, if the other sends nothing. */
function closeIfIdle(sender: Duplex, ended: Duplex, timeout: Millis): void {
  const timer = setTimeout(() => {
    for (const side of [sender, ended]) side.destroy();
  }, timeout).unref();
  sender.on('data', () => timer.refresh());
  sender.once('close', () => clearTimeout(timer));
}

/** The other side has closed: writes what is left, and closes this side. */
function endSide(side: Duplex): void {
  if (side.writableFinished) side.destroy();
  if (side.destroyed) return;
  const close = (): void => void side.destroy();
  const timer = setTimeout(close, DRAIN_TIMEOUT);
  side.once('close', () => clearTimeout(timer));
  side.once('finish', close);
  side.end();
}
