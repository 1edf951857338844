/**
 * Has the memory of a body's pieces given back as soon as they have been written.
 *
 * Node reads what comes into up to 64 KiB outside of the heap, for each piece anew. Left to the collector, all of the heap is marked
 * each time that 64 MB of them have gathered, which cost a third to a half of the time of 1 MB, down or up (Node 24.21).
 *
 * A piece is given back where it can be seen that nobody else has it, and that nothing else lies in its memory: the piece is all of
 * it. One that the system has not taken for sure is left to the collector.
 */
import { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Inbound } from '../server/server-request.ts';
import { Http1Inbound } from '../server/server-request.ts';
import type { Outbound } from '../server/server-response.ts';

/** Shorter ones are not worth a callback. */
const WORTH_FREEING = 8 * 1024;

/** Of uploads, on their way through undici, which writes them by itself. */
const letGo = new WeakSet<Buffer>();

/**
 * Writes a piece of an answer's body. What goes through somebody else's `write` is left to them, who may keep it.
 * @returns false: wait for `drain`
 */
export function forwardPiece(response: Outbound, piece: Buffer): boolean {
  const isNodes = response instanceof ServerResponse && response.write === ServerResponse.prototype.write;
  if (!isNodes || !isAllOfItsMemory(piece)) return response.write(piece);
  return response.write(piece, (error) => {
    if (!error) giveBack(piece);
  });
}

/** A piece of an upload is to be sent, once: whoever had it has no further use for it. In a server of somebody else's they may. */
export function letGoOf(piece: Buffer, source: Inbound): void {
  if (source instanceof Http1Inbound && isAllOfItsMemory(piece)) letGo.add(piece);
}

type Written = (error?: Error | null) => void;

/** Has what was let go of given back when this connection has taken it. */
export function giveBackWritten(socket: Socket): void {
  const write: (piece: Uint8Array | string, encoding?: BufferEncoding, done?: Written) => boolean =
    socket.write.bind(socket);
  socket.write = (piece: Uint8Array | string, encoding?: BufferEncoding | Written, done?: Written) => {
    if (typeof encoding === 'function') return write(piece, undefined, encoding);
    if (done !== undefined || !Buffer.isBuffer(piece) || !letGo.delete(piece)) return write(piece, encoding, done);
    return write(piece, undefined, (error) => {
      if (!error) giveBack(piece);
    });
  };
}

function isAllOfItsMemory(piece: Buffer): boolean {
  return piece.length >= WORTH_FREEING && piece.length === piece.buffer.byteLength;
}

function giveBack({ buffer }: Buffer): void {
  if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}
