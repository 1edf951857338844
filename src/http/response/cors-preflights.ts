import type { RequestRecord } from '../../core/events/proxy-events.ts';
import type { ProxyContext } from '../request/exchange-context.ts';
import type { CorsPolicy } from '../headers/cors-headers.ts';
import { preflightHeaders, preflightMethod } from '../headers/cors-headers.ts';
import { isUsableRequestId } from '../headers/forward-headers.ts';
import type { Inbound } from '../server/server-request.ts';
import { isComing } from '../server/server-request.ts';
import type { Outbound } from '../server/server-response.ts';
import type { Route, Snapshot } from '../request/snapshot-types.ts';
import { endAnswer, writeEmpty } from '../server/write-response.ts';
import { traceIdOf, traceparentOf } from '../headers/trace-context.ts';

export interface PreflightsParts {
  readonly context: ProxyContext;
  readonly snapshot: () => Snapshot;
  /** Of requests: unique. */
  readonly nextId: () => string;
}

/** Answers the preflights of routes that say themselves what pages of other origins may do. No limit concerns them. */
export class Preflights {
  readonly #parts: PreflightsParts;

  constructor(parts: PreflightsParts) {
    this.#parts = parts;
  }

  /** Returns whether it was one, and is answered. For requests that have not been looked at otherwise. */
  take(request: Inbound, response: Outbound): boolean {
    const method = preflightMethod(request);
    const { router } = this.#parts.snapshot();
    const route = method === undefined ? undefined : router.findPreflight(method, request.headers.host, request.path);
    if (route?.cors === undefined) return false;
    this.answer(request, response, route, route.cors);
    return true;
  }

  answer(request: Inbound, response: Outbound, route: Route, cors: CorsPolicy): void {
    const { context, snapshot, nextId } = this.#parts;
    const { via, clock, listen, watcher, isDraining } = context;
    const at = clock.now();
    const id = nextId();
    const path = snapshot().tellPath(request.path);
    listen({ type: 'arrived', route: route.name });
    response.on('close', () => {
      const record = recordOf(request, route, { id, at, path, took: clock.now() - at });
      listen({ type: 'done', record });
      watcher?.refused(record, traceparentOf(request));
    });
    const given = request.headers['x-request-id'];
    const xRequestId = typeof given === 'string' && isUsableRequestId(given) ? given : id;
    const headers = ['Via', via, 'X-Request-Id', xRequestId, 'Tidegate-Request-Id', id];
    headers.push(...preflightHeaders(cors, request));
    if (isDraining() || isComing(request)) headers.push('Connection', 'close');
    writeEmpty(response, 204, headers);
    endAnswer(response, request);
  }
}

function recordOf(
  request: Inbound,
  route: Route,
  known: Pick<RequestRecord, 'id' | 'at' | 'path' | 'took'>,
): RequestRecord {
  return {
    ...known,
    route: route.name,
    upstream: route.target.name,
    method: request.verb,
    client: '',
    status: 204,
    outcome: 'preflight',
    reason: undefined,
    attempts: 0,
    queued: 0,
    slept: 0,
    toHead: 0,
    retryAfter: undefined,
    cut: false,
    traceId: traceIdOf(traceparentOf(request)),
  };
}
