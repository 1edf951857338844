import type { IncomingMessage } from 'node:http';
import { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** An answer over HTTP/1.1. Whoever keeps its place on the connection is told when all of it has been written. */
export class Http1Outbound<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
  owner: { onWritten(): void } | undefined;

  /** Node lets go of the connection here: without a listener, of which each answer would need one more. */
  override detachSocket(socket: Socket): void {
    super.detachSocket(socket);
    if (this.writableFinished) this.owner?.onWritten();
  }
}
