import type { IncomingMessage } from 'node:http';
import { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** An answer over HTTP/1.1. The pipeline it has its place in is told when all of it has been written. */
export class Http1Outbound<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
  pipeline: { onWritten(response: Http1Outbound): void } | undefined;

  /** Node calls this when all is written. Overridden and not listened for: a listener would be one more for each answer. */
  override detachSocket(socket: Socket): void {
    super.detachSocket(socket);
    if (this.writableFinished) this.pipeline?.onWritten(this);
  }
}
