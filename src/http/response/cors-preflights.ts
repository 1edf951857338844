import type { ProxyContext } from '../request/exchange-context.ts';
import type { CorsPolicy } from '../headers/cors-headers.ts';
import { preflightHeaders, preflightMethod } from '../headers/cors-headers.ts';
import { xRequestIdFor } from '../headers/request-id.ts';
import type { HttpServerRequest } from '../server/server-request.ts';
import { isBodyPending } from '../server/server-request.ts';
import type { HttpServerResponse } from '../server/server-response.ts';
import type { Route } from '../request/route.ts';
import type { Snapshot } from '../request/snapshot-types.ts';
import { endResponse } from '../server/end-response.ts';
import { writeEmpty } from '../server/write-response.ts';
import { traceparentOf } from '../headers/trace-context.ts';
import { preflightRecord } from './make-request-record.ts';

export interface CorsPreflightsOptions {
  readonly context: ProxyContext;
  readonly snapshot: () => Snapshot;
  /** A unique request id. */
  readonly nextId: () => string;
}

/** Responds to CORS preflights on routes with a CORS policy. No limit applies to them. */
export class CorsPreflights {
  readonly #options: CorsPreflightsOptions;

  constructor(options: CorsPreflightsOptions) {
    this.#options = options;
  }

  /** Responds if the request is such a preflight. Returns whether it was. For requests that have not been routed. */
  respondIfPreflight(request: HttpServerRequest, response: HttpServerResponse): boolean {
    const method = preflightMethod(request);
    const { router } = this.#options.snapshot();
    const route = method === undefined ? undefined : router.findPreflight(method, request.headers.host, request.path);
    if (route?.cors === undefined) return false;
    this.respond(request, response, route, route.cors);
    return true;
  }

  respond(request: HttpServerRequest, response: HttpServerResponse, route: Route, cors: CorsPolicy): void {
    const { context, snapshot, nextId } = this.#options;
    const { via, clock, listen, observer, isDraining } = context;
    const at = clock.now();
    const id = nextId();
    const path = snapshot().redactPath(request.path);
    listen({ type: 'arrived', route: route.name });
    response.on('close', () => {
      const record = preflightRecord(request, route, { id, at, path, took: clock.now() - at });
      listen({ type: 'done', record });
      observer?.onRefused(record, traceparentOf(request));
    });
    const headers = ['Via', via, 'X-Request-Id', xRequestIdFor(request, id), 'Tidegate-Request-Id', id];
    headers.push(...preflightHeaders(cors, request));
    if (isDraining() || isBodyPending(request)) headers.push('Connection', 'close');
    writeEmpty(response, 204, headers);
    endResponse(response, request);
  }
}
