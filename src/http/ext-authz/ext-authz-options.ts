import type { Millis } from '../../core/scalars.ts';
import type { RequestAuthentication } from '../auth/request-authentication.ts';
import type { ProxyContext } from '../request/exchange-context.ts';
import type { ExtAuthzSettings, Snapshot } from '../request/snapshot-types.ts';
import type { Rejections } from '../response/rejections.ts';
import type { HttpServerRequest } from '../server/server-request.ts';
import type { HttpServerResponse } from '../server/server-response.ts';
import type { Upgrade } from '../server/upgrade.ts';
import type { CheckHandler } from './check-handler.ts';
import type { CheckOptions } from './check-options.ts';

export interface ExtAuthzApiOptions {
  readonly context: ProxyContext;
  readonly rejections: Rejections;
  readonly authentication: RequestAuthentication;
  /** The current configuration. */
  readonly snapshot: () => Snapshot;
  /** A unique request id. */
  readonly nextId: () => string;
  readonly start: (handler: CheckHandler) => void;
  readonly onDone: (handler: CheckHandler) => void;
}

export interface ExtAuthzExchange {
  readonly request: HttpServerRequest;
  readonly response: HttpServerResponse;
  readonly snapshot: Snapshot;
  readonly upgrade: Upgrade | undefined;
}

/** Checks that describe their request in another form than HTTP. */
export interface DescribedChecks {
  /** The settings in effect; undefined if checks are off. */
  readonly settings: ExtAuthzSettings | undefined;
  /** The time of the limits. */
  now(): Millis;
  /**
   * Decides on a request, which has no body. The response is that of a check, with the status of the proxy's own response if the
   * request is refused.
   */
  check(request: HttpServerRequest, response: HttpServerResponse, choice: RouteChoice, options: CheckOptions): void;
}

/** How the route of a checked request is found: by what the request is, or by a name that the ingress sends. */
export type RouteChoice =
  | { readonly by: 'request' }
  | { readonly by: 'route'; readonly name: string }
  | { readonly by: 'upstream'; readonly name: string };
