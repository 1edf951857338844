import type { Dispatcher } from 'undici';
import type { AccountCredential } from '../../core/accounts/account-credential.ts';
import { replaceTraceHeaders } from '../headers/trace-context.ts';
import type { ProxyContext } from '../request/exchange-context.ts';
import type { Payload } from '../request/request-body.ts';
import { type RoutedRequest, upstreamHeaders } from '../request/routed-request.ts';
import { rewriteTarget } from '../request/router.ts';
import { ambiguousUpstreamKeys } from '../idempotency/upstream-key.ts';
import { WEBSOCKET } from '../server/upgrade.ts';
import type { CallOwner } from './attempt-order.ts';
import type { EndpointSelector } from './endpoint-selector.ts';
import type { Endpoint } from './open-endpoint.ts';

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

/** Which key the next attempt has. It may change until it is known where the write was sent before. */
type UpstreamKeys = Pick<EndpointSelector, 'upstreamKey'>;

export interface DispatchRequestsParts {
  readonly routed: RoutedRequest;
  readonly context: Pick<ProxyContext, 'via' | 'proto'>;
  /** Its driver has the ticket, which knows the account of the next attempt. */
  readonly owner: Pick<CallOwner, 'driver'>;
  readonly keys: UpstreamKeys;
  /** Gets the key that was derived for the upstream, or those of several lines. */
  readonly record: { upstreamKey: string | undefined };
}

/** Makes the requests of one exchange, one for each attempt. Those to one endpoint with one account differ in their trace headers only. */
export class DispatchRequests {
  readonly #routed: RoutedRequest;
  readonly #owner: Pick<CallOwner, 'driver'>;
  readonly #context: Pick<ProxyContext, 'via' | 'proto'>;
  readonly #keys: UpstreamKeys;
  readonly #record: { upstreamKey: string | undefined };
  /** Headers as written to `#headersAuthority` with `#headersCredential`, without trace headers. */
  #headers: string[] | undefined;
  #headersAuthority = '';
  #headersCredential: AccountCredential | undefined;
  #headersKey: string | undefined;

  constructor({ routed, context, owner, keys, record }: DispatchRequestsParts) {
    this.#owner = owner;
    this.#routed = routed;
    this.#context = context;
    this.#keys = keys;
    this.#record = record;
  }

  /** @param traceHeaders names and values in turn; undefined if it is not traced */
  to(
    { authority, origin, serverName: servername }: Pick<Endpoint, 'authority' | 'origin' | 'serverName'>,
    body: Payload,
    traceHeaders: readonly string[] | undefined,
  ): DispatchRequest {
    const credential = this.#owner.driver.ticket.account?.credential;
    const { request, route, upgrade } = this.#routed;
    const { upstreamKey } = this.#keys;
    const isSame =
      this.#headersAuthority === authority &&
      this.#headersCredential === credential &&
      this.#headersKey === upstreamKey;
    if (this.#headers === undefined || !isSame) {
      this.#headers = upstreamHeaders(this.#routed, authority, this.#context, { credential, upstreamKey });
      this.#headersAuthority = authority;
      this.#headersCredential = credential;
      this.#headersKey = upstreamKey;
      this.#record.upstreamKey = upstreamKey ?? ambiguousUpstreamKeys(this.#routed);
    }
    return {
      origin,
      servername,
      method: request.verb,
      path: rewriteTarget(request.target, route),
      // Each attempt is a span of its own.
      headers: traceHeaders === undefined ? this.#headers : replaceTraceHeaders(this.#headers, traceHeaders),
      body,
      upgrade: upgrade === undefined ? null : WEBSOCKET,
      takesTrailers: request.httpVersion === '2.0',
    };
  }
}
