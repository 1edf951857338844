import type { Socket } from 'node:net';

/**
 * Delivers socket data to undici synchronously, and answers empty reads cheaply.
 *
 * undici 8.13.1 reads by `readable` and `read()`. A Readable emits the event in an extra tick, and checks its whole state for each
 * read; undici reads six times a request and gets data once. Data that is not read at once, because undici has paused or the
 * connection has another owner, takes the stream's usual way, and so does everything after it: the order is kept.
 */
export function readSynchronously(socket: Socket): void {
  const push = socket.push.bind(socket);
  const read: (size?: number) => unknown = socket.read.bind(socket);
  let pendingChunk: unknown;

  socket.push = (chunk: unknown, encoding?: BufferEncoding) => {
    if (chunk === null || socket.readableLength > 0) return push(chunk, encoding);
    pendingChunk = chunk;
    socket.emit('readable');
    const isConsumed = pendingChunk === undefined;
    pendingChunk = undefined;
    return isConsumed || socket.destroyed || push(chunk, encoding);
  };
  socket.read = (size?: number) => {
    if (pendingChunk !== undefined) {
      const chunk = pendingChunk;
      pendingChunk = undefined;
      return chunk;
    }
    return size === undefined && socket.readableLength === 0 ? null : read(size);
  };
}
