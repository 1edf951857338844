import type { IncomingMessage } from 'node:http';
import { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** A response over HTTP/1.1. Notifies its pipeline when it has been written. */
export class Http1ServerResponse<Request extends IncomingMessage = IncomingMessage> extends ServerResponse<Request> {
  pipeline: { onWritten(response: Http1ServerResponse): void } | undefined;

  /** Node calls this when everything is written. Overridden, because a listener would be one more object for each response. */
  override detachSocket(socket: Socket): void {
    super.detachSocket(socket);
    if (this.writableFinished) this.pipeline?.onWritten(this);
  }
}
