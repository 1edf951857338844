import type { Socket } from 'node:net';

/**
 * Makes the HTTP/1.1 parser of a server's connection drop the requests that follow. Node 24.21 keeps each of them with its
 * response until it is answered (_http_server.js, parserOnIncoming). To pause the socket would not help: the rest of what was
 * read is parsed nevertheless, which may be two thousand requests.
 * @returns false if this version of Node does it differently
 */
export function dropFurtherRequests(socket: Socket): boolean {
  const parser: unknown = 'parser' in socket ? socket.parser : undefined;
  if (typeof parser !== 'object' || parser === null || !('onIncoming' in parser && 'incoming' in parser)) return false;
  parser.onIncoming = () => {
    parser.incoming = null; // the body is dropped too, and an upgrade is not accepted
    return 0;
  };
  return true;
}
