import type { Socket } from 'node:net';

/**
 * Hands what has come on a connection to undici within the call that brought it, and tells it cheaply that nothing more is here.
 *
 * undici 8.13.1 reads by `readable` and `read()`. A Readable tells of the one in a tick of its own, and goes through all of its
 * state for the other, which undici asks six times a request and gets nothing five times. What is not taken at once, because
 * undici has paused or somebody else has the connection, takes the stream's own way, and so do all that comes behind it and the
 * end: nothing overtakes, and the stream reads on as it always does.
 */
export function hastenReads(socket: Socket): void {
  const push = socket.push.bind(socket);
  const read: (size?: number) => unknown = socket.read.bind(socket);
  let inHand: unknown;

  socket.push = (chunk: unknown, encoding?: BufferEncoding) => {
    if (chunk === null || socket.readableLength > 0) return push(chunk, encoding);
    inHand = chunk;
    socket.emit('readable');
    const isTaken = inHand === undefined;
    inHand = undefined;
    return isTaken || socket.destroyed || push(chunk, encoding);
  };
  socket.read = (size?: number) => {
    if (inHand !== undefined) {
      const chunk = inHand;
      inHand = undefined;
      return chunk;
    }
    return size === undefined && socket.readableLength === 0 ? null : read(size);
  };
}
