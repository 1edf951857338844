/**
 * Frees the memory of body chunks as soon as they are written.
 *
 * Node reads each chunk into a new buffer of up to 64 KiB outside of the heap. Left to the garbage collector, every 64 MB of such
 * buffers cause a mark of the whole heap, which took a third to a half of the time to transfer 1 MB up or down (Node 24.21).
 *
 * A chunk is freed only if it certainly has no other user, and fills its memory. A chunk that may not have been written is left to
 * the collector.
 */
import { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { HttpServerRequest } from '../server/server-request.ts';
import { Http1ServerRequest } from '../server/http1-server-request.ts';
import type { HttpServerResponse } from '../server/server-response.ts';

/** Shorter chunks are not worth a callback. */
const MIN_RELEASE_SIZE = 8 * 1024;

/** Chunks of uploads that undici will write. */
const releasable = new WeakSet<Buffer>();

/**
 * Writes a chunk of a response body, and frees it. A `write` that was overridden may keep the chunk, so it is not freed then.
 * @returns false: wait for `drain`
 */
export function writeAndRelease(response: HttpServerResponse, chunk: Buffer): boolean {
  const isNodes = response instanceof ServerResponse && response.write === ServerResponse.prototype.write;
  if (!isNodes || !ownsItsMemory(chunk)) return response.write(chunk);
  return response.write(chunk, (error) => {
    if (!error) releaseBuffer(chunk);
  });
}

/** Marks a chunk of an upload that is sent once and not used again. In a host program's server others may use it. */
export function markReleasable(chunk: Buffer, source: HttpServerRequest): void {
  if (source instanceof Http1ServerRequest && ownsItsMemory(chunk)) releasable.add(chunk);
}

type WriteCallback = (error?: Error | null) => void;

/** Frees marked chunks once this connection has written them. */
export function releaseWrittenBuffers(socket: Socket): void {
  const write: (piece: Uint8Array | string, encoding?: BufferEncoding, done?: WriteCallback) => boolean =
    socket.write.bind(socket);
  socket.write = (piece: Uint8Array | string, encoding?: BufferEncoding | WriteCallback, done?: WriteCallback) => {
    if (typeof encoding === 'function') return write(piece, undefined, encoding);
    if (done !== undefined || !Buffer.isBuffer(piece) || !releasable.delete(piece)) return write(piece, encoding, done);
    return write(piece, undefined, (error) => {
      if (!error) releaseBuffer(piece);
    });
  };
}

function ownsItsMemory(piece: Buffer): boolean {
  return piece.length >= MIN_RELEASE_SIZE && piece.length === piece.buffer.byteLength;
}

function releaseBuffer({ buffer }: Buffer): void {
  if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}
