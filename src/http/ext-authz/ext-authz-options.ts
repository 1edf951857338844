import type { RequestAuthentication } from '../auth/request-authentication.ts';
import type { ProxyContext } from '../request/exchange-context.ts';
import type { Snapshot } from '../request/snapshot-types.ts';
import type { Rejections } from '../response/rejections.ts';
import type { HttpServerRequest } from '../server/server-request.ts';
import type { HttpServerResponse } from '../server/server-response.ts';
import type { Upgrade } from '../server/upgrade.ts';
import type { CheckHandler } from './check-handler.ts';

export interface ExtAuthzApiOptions {
  readonly context: ProxyContext;
  readonly rejections: Rejections;
  readonly authentication: RequestAuthentication;
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
