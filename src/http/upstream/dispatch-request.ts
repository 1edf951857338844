import type { Dispatcher } from 'undici';
import type { Payload } from '../request/request-body.ts';

/** A request as undici dispatches it. undici 8.13.1 reads `servername`, which its types do not name. */
export interface DispatchRequest extends Dispatcher.DispatchOptions {
  readonly path: string;
  /** Names and values in turn. */
  readonly headers: string[];
  readonly body: Payload;
  /**
   * The TLS server name. Without it undici takes the Host header: with `preserveHost` a client would then choose the name
   * that the certificate has to match, and break the connection for the next request.
   */
  readonly servername: string;
  /** The client can get trailers of a response with a length: over HTTP/2. Absent: it cannot. */
  readonly takesTrailers?: boolean;
}
